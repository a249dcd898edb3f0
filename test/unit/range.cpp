// SPDX-License-Identifier: BSD-2-Clause
// sys/range.hpp: half-open ranges and their whole pages.
#include "sys/range.hpp"

#include <unistd.h>

#include <criterion/criterion.h>

using namespace regcache;

Test(range, begins_at_the_address_and_ends_behind_the_last_byte)
{
    const char bytes[10] = {};
    const Range range = Range::of(bytes, sizeof bytes);
    cr_expect(range.address() == bytes);
    cr_expect(range.size() == 10);
    cr_expect(range.end == range.begin + 10);
    cr_expect(!range.is_empty());
    cr_expect(Range::of(bytes, 0).is_empty());
    cr_expect(Range{}.is_empty());
}

Test(range, contains_itself_and_less)
{
    constexpr Range range{10, 20};
    cr_expect(range.contains(range));
    cr_expect(range.contains({10, 11}));
    cr_expect(range.contains({19, 20}));
    cr_expect(range.contains({15, 15}));
    cr_expect(!range.contains({9, 20}));
    cr_expect(!range.contains({10, 21}));
    cr_expect(!range.contains({0, 5}));
}

Test(range, overlaps_by_one_byte_at_least)
{
    constexpr Range range{10, 20};
    cr_expect(range.overlaps({0, 11}));
    cr_expect(range.overlaps({19, 30}));
    cr_expect(range.overlaps({12, 13}));
    cr_expect(range.overlaps({0, 100}));
    cr_expect(!range.overlaps({0, 10}));
    cr_expect(!range.overlaps({20, 30}));
    cr_expect(Range::everything().overlaps({0, 1}));
    cr_expect(Range::everything().overlaps({UINTPTR_MAX - 1, UINTPTR_MAX}));
}

Test(range, intersection_is_what_both_have)
{
    cr_expect(intersection({10, 20}, {15, 30}) == (Range{15, 20}));
    cr_expect(intersection({15, 30}, {10, 20}) == (Range{15, 20}));
    cr_expect(intersection({10, 20}, {12, 13}) == (Range{12, 13}));
    cr_expect(intersection({10, 20}, {20, 30}) == Range{});
    cr_expect(intersection({10, 20}, {40, 50}) == Range{});
}

Test(range, whole_pages_are_the_smallest_that_contain_it)
{
    cr_expect(whole_pages({0x1000, 0x2000}, 0x1000) == (Range{0x1000, 0x2000}));
    cr_expect(whole_pages({0x1001, 0x1002}, 0x1000) == (Range{0x1000, 0x2000}));
    cr_expect(whole_pages({0x1fff, 0x2001}, 0x1000) == (Range{0x1000, 0x3000}));
    cr_expect(whole_pages({0x1000, 0x1000}, 0x1000).is_empty());
    cr_expect(whole_pages({0x201000, 0x202000}, 0x200000) == (Range{0x200000, 0x400000}));
}

Test(range, whole_pages_at_the_end_of_the_address_space_are_none)
{
    cr_expect(whole_pages({UINTPTR_MAX - 10, UINTPTR_MAX - 5}, 0x1000).is_empty());
    cr_expect(whole_pages({UINTPTR_MAX - 10, 5}, 0x1000).is_empty()); // wraps around
    cr_expect(whole_pages({UINTPTR_MAX - 0x2000, UINTPTR_MAX - 0xfff}, 0x1000) ==
              (Range{UINTPTR_MAX - 0x2fff, UINTPTR_MAX - 0xfff}));
}

Test(range, page_size_is_the_machines)
{
    cr_expect(page_size() == static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
}
