// SPDX-License-Identifier: BSD-2-Clause
// regcache over the provider that pins, and what the card sees there. Suites begin with .init = need_pin.
#pragma once

#include "support/eventually.hpp"
#include "support/fabric.hpp"
#include "support/memory.hpp"
#include "support/pin/use.hpp"
#include "support/skip.hpp"

#include <cstdint>
#include <string>

#include <criterion/criterion.h>

namespace regcache::test {

inline Wish over(const std::string &lower)
{
    Wish wish;
    wish.provider = "regcache";
    wish.lower = lower;
    return wish;
}

inline Wish over_pin() { return over("pin"); }

// Registrations that pin has made since its last reset.
inline std::uint64_t registered() { return pin_count().registered; }

// The byte at `address` as the card sees it through the region; '!' when it sees nothing.
inline char seen(fid_mr *region, const void *address)
{
    char byte = '!';
    return pin->peek(fi_mr_desc(region), address, &byte, 1) == 1 ? byte : '!';
}
inline char seen(const Region &region, const void *address) { return seen(region.get(), address); }

// The same as a peer sees it, which holds the region's key.
inline char seen_by_peer(std::uint64_t key, const void *address)
{
    char byte = '!';
    return pin->remote_read(key, reinterpret_cast<std::uint64_t>(address), &byte, 1) == 1 ? byte : '!';
}

// What pin was asked for when it made the region.
inline pin_region look(const Region &region)
{
    pin_region asked{};
    cr_assert(pin->look(fi_mr_desc(region.get()), &asked) == 0, "the descriptor isn't a live one of pin's");
    return asked;
}

// Nothing but pin's own live objects ever came to pin.
inline void expect_no_misuse()
{
    const pin_counters counters = pin_count();
    cr_expect(counters.foreign_fids == 0, "%lu foreign objects, the newest of class %lu", counters.foreign_fids,
              pin->newest_foreign_class());
    cr_expect(counters.foreign_descs == 0, "%lu foreign descriptors", counters.foreign_descs);
    cr_expect(counters.double_closes == 0, "%lu closed twice", counters.double_closes);
    cr_expect(counters.calls_after_close == 0, "%lu calls after a close", counters.calls_after_close);
}

// And all of it is gone.
inline void expect_pin_is_empty()
{
    expect_no_misuse();
    const pin_counters counters = pin_count();
    cr_expect(counters.live == 0, "%lu registrations stay", counters.live);
    cr_expect(counters.objects == 0, "%lu objects stay open", counters.objects);
}

} // namespace regcache::test
