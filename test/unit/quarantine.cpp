// SPDX-License-Identifier: BSD-2-Clause
// cache/quarantine.hpp: what is held, and for how long.
#include "cache/quarantine.hpp"

#include <criterion/criterion.h>

using namespace regcache;

namespace {

constexpr std::uint64_t kHold = Quarantine::kHoldNs;
constexpr std::uint64_t kNow = 1'000'000'000;

} // namespace

Test(quarantine, holds_nothing_at_first)
{
    Quarantine quarantine;
    cr_expect(!quarantine.may_hold());
    cr_expect(!quarantine.holds(Range::everything(), 1));
}

Test(quarantine, holds_what_overlaps_until_the_time_is_over)
{
    Quarantine quarantine;
    quarantine.add({100, 200}, kNow);
    cr_expect(quarantine.may_hold());
    cr_expect(quarantine.holds({150, 160}, kNow));
    cr_expect(quarantine.holds({0, 101}, kNow + kHold - 1));
    cr_expect(!quarantine.holds({0, 100}, kNow));
    cr_expect(!quarantine.holds({200, 300}, kNow));
    cr_expect(!quarantine.holds({150, 160}, kNow + kHold));
    cr_expect(!quarantine.may_hold());
}

Test(quarantine, each_range_has_its_own_time)
{
    Quarantine quarantine;
    quarantine.add({100, 200}, kNow);
    quarantine.add({300, 400}, kNow + kHold / 2);
    cr_expect(!quarantine.holds({100, 200}, kNow + kHold));
    cr_expect(quarantine.holds({300, 400}, kNow + kHold));
    cr_expect(!quarantine.holds({300, 400}, kNow + 2 * kHold));
}

Test(quarantine, same_range_again_starts_its_time_anew)
{
    Quarantine quarantine;
    quarantine.add({100, 200}, kNow);
    quarantine.add({100, 200}, kNow + kHold - 1);
    cr_expect(quarantine.holds({100, 200}, kNow + kHold));
}

Test(quarantine, more_than_fit_are_held_with_everything_else)
{
    Quarantine quarantine;
    for (std::uintptr_t i = 0; i < 32; ++i)
        quarantine.add({100 * i, 100 * i + 50}, kNow + i);
    cr_expect(!quarantine.holds({60, 70}, kNow + 40)); // they fit
    cr_expect(quarantine.holds({0, 1}, kNow + 40));
    quarantine.add({10'000, 10'001}, kNow + 50);
    cr_expect(quarantine.holds({60, 70}, kNow + 50)); // one was pushed out while it had to be held
    cr_expect(quarantine.holds({0, 1}, kNow + kHold - 1));
    cr_expect(!quarantine.holds({60, 70}, kNow + 50 + kHold));
}

Test(quarantine, slots_whose_time_is_over_are_used_again)
{
    Quarantine quarantine;
    for (std::uintptr_t i = 0; i < 32; ++i)
        quarantine.add({100, 200}, kNow);
    quarantine.add({300, 400}, kNow + kHold);
    cr_expect(quarantine.holds({300, 400}, kNow + kHold));
    cr_expect(!quarantine.holds({100, 200}, kNow + kHold));
}

Test(quarantine, everything_is_held_for_its_time)
{
    Quarantine quarantine;
    quarantine.add_everything(kNow);
    cr_expect(quarantine.may_hold());
    cr_expect(quarantine.holds({1, 2}, kNow + kHold - 1));
    cr_expect(!quarantine.holds({1, 2}, kNow + kHold));
}
