// SPDX-License-Identifier: BSD-2-Clause
// The lower provider refuses the n-th registration, for each n, with each kind of error: the application sees that error or
// none, all the rest works, and nothing stays behind.
#include "prov/changes.hpp"
#include "prov/over_pin.hpp"
#include "prov/variable.hpp"
#include "support/watchdog.hpp"

#include <string>
#include <vector>

#include <criterion/criterion.h>

using namespace regcache::test;

namespace {

constexpr std::size_t kPages = 16;

struct Answers {
    unsigned good = 0, refused = 0, wrong = 0;
    int error = 0; // the last one
};

// A short life of a domain: hits, misses, requests that are passed through, changed memory, regions that stay open.
Answers live(int mr_mode)
{
    Answers answers;
    Wish wish = over_pin();
    wish.mr_mode = mr_mode;
    Card card(wish);
    const Mapping memory = replaceable(Kind::Private, kPages * page_size());
    memory.fill('A');
    std::vector<Region> open;
    std::uint64_t next_key = 1;
    const auto request = [&](std::size_t first, std::size_t pages, std::uint64_t access, std::size_t pieces = 1) {
        char *const start = memory.data() + first * page_size();
        const iovec iov[] = {{start, pages * page_size()}, {memory.data(), 1}};
        Region region;
        const int error = fi_mr_regv(card.domain(), iov, pieces, access, 0, next_key++, 0, region.out(), nullptr);
        if (error != 0) {
            ++answers.refused;
            answers.error = error;
            answers.wrong += static_cast<bool>(region);
            return;
        }
        ++answers.good;
        answers.wrong += seen(region, start) != memory.data()[first * page_size()];
        if (answers.good % 3 == 0)
            open.push_back(std::move(region));
    };
    for (std::size_t round = 0; round < 3; ++round) {
        for (std::size_t first = 0; first < kPages; first += 4) {
            request(first, 3, kLocalRights);
            request(first + 1, 1, FI_SEND);
            request(first, 2, kAllRights);
            request(first, 1, kLocalRights, 2);
        }
        replace_by_unmapping(memory.data() + round * page_size(), 5 * page_size());
        memory.fill(static_cast<char>('B' + round));
    }
    open.clear();
    answers.wrong += card.close() != 0;
    return answers;
}

void refuse_each(int error, std::uint64_t every, int mr_mode)
{
    const Watchdog watchdog("refusals");
    live(mr_mode); // what is kept for good is there now
    pin->reset();
    const Base before = measure_base();
    std::uint64_t n = 1;
    for (; n < 500; ++n) {
        const pin_rule rule{n, every, error};
        pin->fail_register(&rule);
        const Answers answers = live(mr_mode);
        const std::uint64_t refusals = pin_count().refused;
        pin->reset();
        cr_assert(answers.wrong == 0, "n %lu: %u answers were wrong", n, answers.wrong);
        cr_assert(answers.refused <= refusals);
        cr_assert(answers.refused == 0 || answers.error == -error, "n %lu: %s", n, fi_strerror(-answers.error));
        expect_pin_is_empty();
        if (refusals == 0)
            break; // there is no n-th one
        if (error == FI_EINVAL)
            cr_expect(answers.refused == refusals, "n %lu: such a refusal is final", n);
    }
    cr_expect(n > 10 && n < 500, "ended at n %lu", n);
    cr_expect(is_back_at_base(before));
}

} // namespace

TestSuite(failures, .init = need_pin);

Test(failures, no_memory_once) { refuse_each(FI_ENOMEM, 0, kBasicModes); }
Test(failures, no_memory_again_and_again) { refuse_each(FI_ENOMEM, 2, kBasicModes); }
Test(failures, try_again_once) { refuse_each(FI_EAGAIN, 0, kBasicModes); }
Test(failures, invalid_once) { refuse_each(FI_EINVAL, 0, kBasicModes); }
Test(failures, invalid_again_and_again) { refuse_each(FI_EINVAL, 3, kBasicModes); }

Test(failures, no_memory_with_our_keys)
{
    const Variable modes("FI_PIN_MR_MODE", "local,virt_addr,allocated");
    refuse_each(FI_ENOMEM, 0, kBasicModes);
}

Test(failures, no_memory_with_the_application_s_keys)
{
    const Variable modes("FI_PIN_MR_MODE", "local,virt_addr,allocated");
    refuse_each(FI_ENOMEM, 0, FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED);
}

// What refuses everything refuses; the process goes on.
Test(failures, nothing_can_be_registered_for_a_while)
{
    const Watchdog watchdog("nothing can be registered");
    Card card(over_pin());
    const Mapping memory(Kind::Private, page_size());
    for (const int error : {FI_ENOMEM, FI_EAGAIN, FI_ENOSPC, FI_EINVAL, FI_EIO, FI_EACCES, FI_ENOSYS}) {
        const pin_rule rule{1, 1, error};
        pin->fail_register(&rule);
        for (int i = 0; i < 5; ++i) {
            int answer = 0;
            cr_expect(!card.reg(memory.data(), page_size(), kAllRights, &answer));
            cr_expect(answer == -error, "%s", fi_strerror(-answer));
        }
    }
    pin->reset();
    cr_expect(card.reg(memory.data(), page_size()));
}
