// SPDX-License-Identifier: BSD-2-Clause
// Does the pin provider misbehave as ordered, and count what happens?
#include "support/fabric.hpp"
#include "support/memory.hpp"
#include "support/pin/use.hpp"
#include "support/skip.hpp"
#include "support/watchdog.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <criterion/criterion.h>

using namespace regcache::test;

namespace {

int reg_error(Card &card, const void *start, std::size_t len)
{
    int error = 0;
    card.reg(start, len, kAllRights, &error);
    return error;
}

} // namespace

TestSuite(pin_script, .init = need_pin);

Test(pin_script, refuses_the_ordered_registrations)
{
    Card card;
    const Mapping memory(Kind::Private, page_size());
    const pin_rule rule{2, 3, FI_EAGAIN};
    pin->fail_register(&rule);
    for (int call = 1; call <= 10; ++call) {
        const int expected = call == 2 || call == 5 || call == 8 ? -FI_EAGAIN : 0;
        cr_expect(reg_error(card, memory.data(), page_size()) == expected, "call %d", call);
    }
    const pin_rule once{1, 0, FI_EINVAL};
    pin->fail_register(&once);
    cr_expect(reg_error(card, memory.data(), page_size()) == -FI_EINVAL);
    cr_expect(reg_error(card, memory.data(), page_size()) == 0);
    pin->fail_register(&once);
    pin->fail_register(nullptr);
    cr_expect(reg_error(card, memory.data(), page_size()) == 0);
    cr_expect(pin_count().asked == 13);
    cr_expect(pin_count().refused == 4);
    cr_expect(pin_count().registered == 9);
    cr_expect(pin_count().deregistered == 9);
}

Test(pin_script, refuses_the_ordered_deregistration_and_keeps_the_region)
{
    Card card;
    const Mapping memory(Kind::Private, page_size());
    memory.fill('A');
    Region region = card.reg(memory.data(), page_size());
    const pin_rule rule{1, 0, FI_EBUSY};
    pin->fail_deregister(&rule);
    cr_expect(region.close() == -FI_EBUSY);
    cr_expect(pin_count().live == 1);
    char byte = 0;
    cr_expect(pin->read(fi_mr_desc(region.get()), memory.data(), &byte, 1) == 1);
    cr_expect(region.close() == 0);
    cr_expect(pin_count().live == 0);
    cr_expect(pin_count().double_closes == 0);
}

Test(pin_script, limits_count_and_bytes)
{
    Card card;
    const Mapping memory(Kind::Private, 16 * page_size());
    pin->limit(2, 0);
    Region one = card.reg(memory.data(), page_size());
    const Region two = card.reg(memory.data(), page_size());
    cr_expect(reg_error(card, memory.data(), page_size()) == -FI_ENOMEM);
    cr_expect(one.close() == 0);
    cr_expect(reg_error(card, memory.data(), page_size()) == 0);
    pin->limit(0, 3 * page_size());
    cr_expect(reg_error(card, memory.data(), 2 * page_size()) == 0);
    cr_expect(reg_error(card, memory.data(), 2 * page_size() + 1) == -FI_ENOMEM);
}

Test(pin_script, hands_out_keys_fresh_or_lowest)
{
    Card card;
    const Mapping memory(Kind::Private, page_size());
    pin->keys(PIN_KEYS_LOWEST);
    Region one = card.reg(memory.data(), page_size());
    Region two = card.reg(memory.data(), page_size());
    const std::uint64_t first = fi_mr_key(one.get());
    const std::uint64_t second = fi_mr_key(two.get());
    cr_expect(first != second);
    one.close();
    const Region three = card.reg(memory.data(), page_size());
    cr_expect(fi_mr_key(three.get()) == first);
    pin->keys(PIN_KEYS_FRESH);
    two.close();
    const Region four = card.reg(memory.data(), page_size());
    cr_expect(fi_mr_key(four.get()) != second);
}

Test(pin_script, gives_narrower_rights_when_ordered)
{
    Card card;
    const Mapping memory(Kind::Private, page_size());
    pin->narrow_access(FI_SEND);
    const Region region = card.reg(memory.data(), page_size());
    pin_region seen;
    cr_assert(pin->look_key(fi_mr_key(region.get()), &seen) == 0);
    cr_expect(seen.access == kAllRights);
    cr_expect(seen.given_access == FI_SEND);
    cr_expect(pin->write(fi_mr_desc(region.get()), memory.data(), "x", 1) == -EACCES);
}

namespace {

struct Hook {
    std::mutex mutex;
    std::vector<pin_moment> moments;
    int answer = 0;
};

int note(void *argument, pin_moment moment, const void *, std::size_t)
{
    auto *hook = static_cast<Hook *>(argument);
    const std::lock_guard lock(hook->mutex);
    hook->moments.push_back(moment);
    return hook->answer;
}

// What makes caches hang: the card's driver changes the address space, and registers memory of its own.
int change_memory(void *argument, pin_moment, const void *, std::size_t)
{
    thread_local bool is_inside = false;
    if (is_inside)
        return 0;
    is_inside = true;
    void *scratch = std::malloc(1 << 20);
    std::free(scratch);
    {
        const Mapping mapped(Kind::Private, 4 * page_size());
        mapped.fill('x');
        static_cast<Card *>(argument)->reg(mapped.data(), page_size());
    }
    is_inside = false;
    return 0;
}

} // namespace

Test(pin_script, calls_the_hook_at_each_moment)
{
    Card card;
    const Mapping memory(Kind::Private, page_size());
    Hook hook;
    pin->hook(&note, &hook);
    card.reg(memory.data(), page_size());
    cr_expect(hook.moments == (std::vector{PIN_BEFORE_REGISTER, PIN_AFTER_REGISTER, PIN_BEFORE_DEREGISTER, PIN_AFTER_DEREGISTER}));
    hook.answer = FI_EAGAIN;
    cr_expect(reg_error(card, memory.data(), page_size()) == -FI_EAGAIN);
    pin->hook(nullptr, nullptr);
    cr_expect(reg_error(card, memory.data(), page_size()) == 0);
}

Test(pin_script, the_hook_may_change_memory_and_register)
{
    const Watchdog watchdog("a hook that registers");
    Card card;
    const Mapping memory(Kind::Private, 64 * page_size());
    pin->hook(&change_memory, &card);
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread)
        threads.emplace_back([&, thread] {
            for (int round = 0; round < 200; ++round)
                card.reg(memory.data() + 16 * thread * page_size(), page_size());
        });
    for (std::thread &thread : threads)
        thread.join();
    pin->hook(nullptr, nullptr);
    cr_expect(pin_count().live == 0);
    cr_expect(pin_count().refused == 0);
    cr_expect(pin_count().double_closes == 0);
}

Test(pin_script, the_environment_orders_too)
{
    setenv("FI_PIN_FAIL_REGISTER", "2:EINVAL", 1);
    setenv("FI_PIN_MAX_COUNT", "1", 1);
    pin->reset();
    Card card;
    const Mapping memory(Kind::Private, page_size());
    {
        const Region one = card.reg(memory.data(), page_size());
        cr_assert(one);
        cr_expect(reg_error(card, memory.data(), page_size()) == -FI_EINVAL);
        cr_expect(reg_error(card, memory.data(), page_size()) == -FI_ENOMEM);
    }
    cr_expect(reg_error(card, memory.data(), page_size()) == 0);
    unsetenv("FI_PIN_FAIL_REGISTER");
    unsetenv("FI_PIN_MAX_COUNT");
    pin->reset();
}

Test(pin_script, each_tells_the_live_registrations)
{
    Card card;
    const Mapping memory(Kind::Private, 8 * page_size());
    std::vector<Region> regions;
    for (std::size_t at = 0; at < 8; ++at)
        regions.push_back(card.reg(memory.data() + at * page_size(), page_size()));
    regions[3].close();
    std::set<const void *> starts;
    const auto note_start = [](void *argument, const pin_region *region) {
        static_cast<std::set<const void *> *>(argument)->insert(region->start);
        return 0;
    };
    cr_expect(pin->each(note_start, &starts) == 0);
    cr_expect(starts.size() == 7);
    cr_expect(starts.count(memory.data() + 3 * page_size()) == 0);
}

Test(pin_script, a_forked_child_neither_registers_nor_unpins)
{
    skip_under_sanitizer("its run time isn't safe to use in a forked child");
    Card card;
    const Mapping memory(Kind::Shared, page_size());
    memory.fill('A');
    Region region = card.reg(memory.data(), page_size());
    void *desc = fi_mr_desc(region.get());
    const pid_t child = fork();
    if (child == 0) {
        const bool is_refused = reg_error(card, memory.data(), page_size()) == -FI_EOPNOTSUPP;
        const bool is_closed = region.close() == 0;
        char byte = 0;
        const bool is_unread = pin->read(desc, memory.data(), &byte, 1) < 0;
        _exit(is_refused && is_closed && is_unread && pin_count().calls_in_child == 2 ? 0 : 1);
    }
    int status = 0;
    cr_assert(waitpid(child, &status, 0) == child);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d", status);
    char byte = 0;
    cr_expect(pin->read(desc, memory.data(), &byte, 1) == 1);
    cr_expect(byte == 'A');
    cr_expect(pin_count().calls_in_child == 0);
}
