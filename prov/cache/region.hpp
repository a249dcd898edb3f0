// SPDX-License-Identifier: BSD-2-Clause
// One registration of the lower provider and what the cache knows of it. Decides nothing.
#pragma once

#include "cache/list.hpp"
#include "cache/lower.hpp"
#include "index/interval_tree.hpp"
#include "vm/source.hpp"

#include <cstdint>

namespace regcache {

// A region's life. `users` counts handles; all fields but range, rights and registration are guarded by the cache's lock.
//
//   (made) --insert--> Cached --event, evict--> Gone --last release--> (ended)
//      \--not cacheable, or changed while it was registered--> Gone
//
// Cached regions without users are in the list of idle ones; Gone ones without users are being deregistered.
enum class RegionState : std::uint8_t {
    Cached, // in the index: may be handed out
    Gone,   // never handed out again
};

struct Region {
    Range range;                  // what is registered
    WatchedRange watched;         // what the source watches for it; empty when it isn't watched
    Rights rights = 0;            // exactly what it was registered with
    void *registration = nullptr; // the lower provider's
    std::uint64_t last_use = 0;   // the cache's clock
    std::uint32_t users = 0;
    RegionState state = RegionState::Gone;
    bool is_made_when_off = false; // by a forked child, which ends it itself
    IntervalNode<Region> in_index;
    ListNode<Region> in_list;
};
static_assert(sizeof(Region) <= 256, "a cache may hold a million of them");

} // namespace regcache
