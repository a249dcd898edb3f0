// SPDX-License-Identifier: BSD-2-Clause
// What happens where there is no room: in the card, in what the process may lock, in the cache's own limits. Counts
// registrations, measures no time.
#include "prov/messages.hpp"
#include "prov/over_pin.hpp"
#include "prov/variable.hpp"
#include "support/watchdog.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vector>

#include <criterion/criterion.h>

using namespace regcache::test;

namespace {

// Buffers that lie apart, so that none serves another.
class Buffers {
public:
    Buffers(std::size_t count, std::size_t pages) : pages_(pages), memory_(Kind::Private, count * (pages + 1) * page_size())
    {
        memory_.fill('A');
    }
    char *operator[](std::size_t i) const { return memory_.data() + i * (pages_ + 1) * page_size(); }
    std::size_t bytes() const { return pages_ * page_size(); }

private:
    std::size_t pages_;
    Mapping memory_;
};

bool use(Card &card, const Buffers &buffers, std::size_t i)
{
    const Region region = card.reg(buffers[i], buffers.bytes(), kLocalRights);
    return region && seen(region, buffers[i]) == 'A';
}

// Goes round `set` buffers `rounds` times; how many requests were registered below.
std::uint64_t registrations_of_going_round(std::size_t set, int rounds)
{
    Card card(over_pin());
    const Buffers buffers(set, 1);
    const std::uint64_t before = registered();
    for (int round = 0; round < rounds; ++round)
        for (std::size_t i = 0; i < set; ++i)
            cr_expect(use(card, buffers, i));
    return registered() - before;
}

void begin_with_warnings()
{
    show_warnings();
    need_pin();
}

} // namespace

TestSuite(limits, .init = need_pin);
TestSuite(limits_and_warnings, .init = begin_with_warnings);

Test(limits_and_warnings, a_card_with_room_for_eight_serves_many_one_after_the_other)
{
    const Messages messages;
    const Watchdog watchdog("a card with room for eight");
    Card card(over_pin());
    const Buffers buffers(100, 2);
    pin->limit(8, 0);
    for (int round = 0; round < 3; ++round)
        for (std::size_t i = 0; i < 100; ++i)
            cr_assert(use(card, buffers, i), "buffer %zu", i);
    cr_expect(pin_count().most_live <= 8);
    cr_expect(pin_count().refused > 0, "pin had to refuse");
    cr_expect(messages.warnings() == 0, "nothing of it is worth a warning: %s", messages.text().c_str());
}

Test(limits, a_card_with_room_for_bytes_serves_many_one_after_the_other)
{
    Card card(over_pin());
    const Buffers small(50, 1), large(20, 16);
    pin->limit(0, 20 * page_size());
    for (int round = 0; round < 3; ++round) {
        for (std::size_t i = 0; i < 50; ++i)
            cr_assert(use(card, small, i), "small buffer %zu", i);
        for (std::size_t i = 0; i < 20; ++i)
            cr_assert(use(card, large, i), "large buffer %zu", i);
    }
    cr_expect(pin_count().most_bytes <= 20 * page_size());
}

Test(limits, a_card_that_is_full_of_open_regions_says_so_itself)
{
    Card card(over_pin());
    const Buffers buffers(10, 1);
    pin->limit(8, 0);
    std::vector<Region> open;
    for (std::size_t i = 0; i < 8; ++i)
        open.push_back(card.reg(buffers[i], buffers.bytes()));
    for (int i = 0; i < 3; ++i) {
        int error = 0;
        cr_expect(!card.reg(buffers[8], buffers.bytes(), kAllRights, &error));
        cr_expect(error == -FI_ENOMEM, "%s", fi_strerror(-error));
    }
    cr_expect(use(card, buffers, 3), "what is open hits");
    open.pop_back();
    cr_expect(use(card, buffers, 8), "there is room again");
    for (const Region &region : open)
        cr_expect(seen(region, look(region).start) == 'A');
}

Test(limits, a_request_that_is_passed_through_gets_the_room_of_idle_ones)
{
    Card card(over_pin());
    const Buffers buffers(8, 1);
    for (std::size_t i = 0; i < 8; ++i)
        cr_expect(use(card, buffers, i));
    pin->limit(8, 0);
    const iovec pieces[] = {{buffers[0], 1}, {buffers[1], 1}};
    Region region;
    cr_expect(fi_mr_regv(card.domain(), pieces, 2, FI_SEND, 0, 0, 0, region.out(), nullptr) == 0);
    int error = 0;
    card.regattr({}, 0, &error);
    cr_expect(error == -FI_EINVAL);
}

Test(limits, the_cache_holds_no_more_than_max_count)
{
    const Variable count("FI_REGCACHE_MAX_COUNT", "10");
    Card card(over_pin());
    const Buffers buffers(100, 1);
    for (int round = 0; round < 3; ++round)
        for (std::size_t i = 0; i < 100; ++i) {
            cr_expect(use(card, buffers, i));
            cr_expect(pin_count().live <= 10, "%lu are held", pin_count().live);
        }
    // What is open is the application's; the cache's limit fails nothing.
    std::vector<Region> open;
    for (std::size_t i = 0; i < 50; ++i)
        open.push_back(card.reg(buffers[i], buffers.bytes()));
    for (const Region &region : open)
        cr_expect(region);
    open.clear();
    cr_expect(pin_count().live <= 10, "%lu are held", pin_count().live);
}

Test(limits, the_cache_holds_no_more_than_max_size)
{
    const Variable size("FI_REGCACHE_MAX_SIZE", "64K");
    Card card(over_pin());
    const std::uint64_t most = 64 * 1024;
    const Buffers small(30, 1), large(10, 8), huge(2, 32);
    for (int round = 0; round < 3; ++round) {
        for (std::size_t i = 0; i < 30; ++i) {
            cr_expect(use(card, small, i));
            cr_expect(pin_count().bytes <= most, "%lu bytes are held", pin_count().bytes);
        }
        for (std::size_t i = 0; i < 10; ++i) {
            cr_expect(use(card, large, i));
            cr_expect(pin_count().bytes <= most, "%lu bytes are held", pin_count().bytes);
        }
        for (std::size_t i = 0; i < 2; ++i) {
            cr_expect(use(card, huge, i), "larger than all that the cache may hold");
            cr_expect(pin_count().bytes <= most, "%lu bytes are held", pin_count().bytes);
        }
    }
}

Test(limits, half_of_the_card_s_room_is_left_to_others)
{
    const Variable count("FI_PIN_MR_CNT", "16");
    Card card(over_pin());
    const Buffers buffers(40, 1);
    for (std::size_t i = 0; i < 40; ++i)
        cr_expect(use(card, buffers, i));
    cr_expect(pin_count().live <= 8, "%lu are held", pin_count().live);
}

// A program that goes round one buffer more than there is room for must not lose them all, each just before its use.
Test(limits, one_buffer_too_many_costs_less_than_half_of_the_hits)
{
    const std::uint64_t requests = 17 * 40;
    {
        const Variable count("FI_REGCACHE_MAX_COUNT", "16");
        const std::uint64_t misses = registrations_of_going_round(17, 40);
        cr_expect(misses <= requests / 2, "%lu of %lu requests were registered", misses, requests);
        cr_expect(registrations_of_going_round(16, 40) == 16, "what fits hits");
    }
    {
        const Variable size("FI_REGCACHE_MAX_SIZE", std::to_string(16 * page_size()));
        const std::uint64_t misses = registrations_of_going_round(17, 40);
        cr_expect(misses <= requests / 2, "%lu of %lu requests were registered", misses, requests);
    }
}

Test(limits, what_is_used_all_the_time_stays)
{
    const Variable count("FI_REGCACHE_MAX_COUNT", "8");
    Card card(over_pin());
    const Buffers buffers(500, 1);
    cr_expect(use(card, buffers, 0));
    std::uint64_t of_the_hot_one = 0;
    for (std::size_t i = 1; i < 500; ++i) {
        cr_expect(use(card, buffers, i));
        const std::uint64_t before = registered();
        cr_expect(use(card, buffers, 0));
        of_the_hot_one += registered() - before;
    }
    cr_expect(of_the_hot_one == 0, "it was registered %lu times more", of_the_hot_one);
}

// A working set that moves on: the new one is cached after a while.
Test(limits, what_is_used_no_more_makes_room)
{
    const Variable count("FI_REGCACHE_MAX_COUNT", "8");
    Card card(over_pin());
    const Buffers buffers(16, 1);
    for (int round = 0; round < 50; ++round)
        for (std::size_t i = 0; i < 8; ++i)
            cr_expect(use(card, buffers, i));
    for (int round = 0; round < 50; ++round)
        for (std::size_t i = 8; i < 16; ++i)
            cr_expect(use(card, buffers, i));
    const std::uint64_t before = registered();
    for (std::size_t i = 8; i < 16; ++i)
        cr_expect(use(card, buffers, i));
    cr_expect(registered() == before, "%lu of the new set aren't cached", registered() - before);
}

// The lower provider's refusal to give something back is its affair: counted, said once, and nothing else is harmed.
Test(limits_and_warnings, a_deregistration_that_fails_is_counted_and_harms_nothing)
{
    skip_under_sanitizer("to its leak check a domain that can't be closed is a leak");
    const Messages messages;
    const Variable stats("FI_REGCACHE_STATS", "yes"), count("FI_REGCACHE_MAX_COUNT", "4");
    {
        Card card(over_pin());
        const Buffers buffers(40, 1);
        const pin_rule rule{3, 4, FI_EIO};
        pin->fail_deregister(&rule);
        for (int round = 0; round < 4; ++round)
            for (std::size_t i = 0; i < 40; ++i)
                cr_expect(use(card, buffers, i));
        Region region = card.reg(buffers[0], buffers.bytes());
        cr_expect(region.close() == 0);
        pin->fail_deregister(nullptr);
        cr_expect(pin_count().live > 4, "what couldn't be given back is there still");
        cr_expect(card.close() == -FI_EBUSY, "as the lower provider says");
        cr_expect(use(card, buffers, 1), "and the domain goes on");
        cr_expect(messages.warnings({"can't deregister"}) == 1, "%s", messages.text().c_str());
        cr_expect(messages.warnings() == 1, "%s", messages.text().c_str());
        cr_expect(card.close() == -FI_EBUSY);
    } // for good; fi_close says so
    expect_no_misuse();
}

Test(limits, of_what_a_user_may_lock_are_kept)
{
    const Watchdog watchdog("an ordinary user");
    if (geteuid() != 0)
        skip("only root can become an ordinary user for this");
    // This test's process is that user from now on. It stays readable to itself.
    const rlimit small{1 << 20, 1 << 20};
    cr_assert(setrlimit(RLIMIT_MEMLOCK, &small) == 0);
    if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0)
        skip("this process can't become an ordinary user");
    char why[256];
    if (pin->unusable(why, sizeof(why)))
        skip(std::string("an ordinary user can't pin here: ") + why);
    Card card(over_pin());
    const Buffers buffers(64, 16); // 64 KiB each, 4 MiB together
    for (int round = 0; round < 3; ++round)
        for (std::size_t i = 0; i < 64; ++i)
            cr_expect(use(card, buffers, i), "buffer %zu", i);
    cr_expect(pin_count().most_bytes < (1 << 20));
    cr_expect(pin_count().refused == 0, "the cache keeps below the limit by itself");
    const Buffers too_large(1, 512);
    int error = 0;
    cr_expect(!card.reg(too_large[0], too_large.bytes(), kLocalRights, &error));
    cr_expect(error == -FI_ENOMEM, "%s", fi_strerror(-error));
    cr_expect(use(card, buffers, 0));
    // Regions that the application keeps open take the rest, and idle ones make room for them.
    std::vector<Region> open;
    while (Region region = card.reg(buffers[open.size()], buffers.bytes(), kLocalRights, &error)) {
        open.push_back(std::move(region));
        cr_assert(open.size() < 64);
    }
    cr_expect(error == -FI_ENOMEM, "%s", fi_strerror(-error));
    cr_expect(open.size() >= 8, "only %zu of 64 KiB each", open.size());
}
