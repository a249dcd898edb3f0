// SPDX-License-Identifier: BSD-2-Clause
// What a cache has done so far: numbers that anybody reads without stopping anybody.
#pragma once

#include "sys/atomic.hpp"
#include "vm/source.hpp"

#include <array>
#include <cstdint>

namespace regcache {

// The counters under the cache's lock are written with add_alone, the others with add_relaxed. They order nothing.
struct Statistics {
    Atomic<std::uint64_t> hits, misses, invalidations, evictions, overtaken, not_admitted; // under the cache's lock
    Atomic<std::uint64_t> lost, unconfirmed;                                               // under the cache's lock
    Atomic<std::uint64_t> events;                                                          // under the cache's lock
    Atomic<std::uint64_t> passed_through, refused_below, registrations, failed_deregistrations;
    Atomic<std::uint64_t> pinned_bytes;
    Atomic<std::uint64_t> most_pinned_bytes; // may miss a peak that two threads make together
    std::array<Atomic<std::uint64_t>, kWatchAnswers> uncacheable; // by Watch answer
};

struct StatisticsSnapshot {
    std::uint64_t asked = 0;          // requests: hits + misses + passed through
    std::uint64_t hits = 0;           // served by a region that was there
    std::uint64_t misses = 0;         // registered below
    std::uint64_t passed_through = 0; // of a kind that no cache may serve
    std::uint64_t invalidations = 0;  // regions that an event took out
    std::uint64_t evictions = 0;      // regions that a limit or a refusal took out
    std::uint64_t uncacheable = 0;    // misses whose memory can't be watched
    std::uint64_t overtaken = 0;      // misses whose memory changed while it was registered, or just before
    std::uint64_t not_admitted = 0;   // misses that were not kept since a limit was reached
    std::uint64_t unconfirmed = 0;    // misses while one change after the other was on its way
    std::uint64_t events = 0;         // VM events read
    std::uint64_t lost = 0;           // times that the queue had no room: everything counted as changed
    std::uint64_t confirm_waits = 0;  // times that a change on its way was waited for, by all caches of the process
    std::uint64_t registrations = 0;  // successful registrations below
    std::uint64_t refused_below = 0;  // registrations that the lower provider refused
    std::uint64_t failed_deregistrations = 0;
    std::uint64_t pinned_bytes = 0; // in registrations made through the cache that are not ended yet
    std::uint64_t most_pinned_bytes = 0; // the most of it so far
    std::array<std::uint64_t, kWatchAnswers> uncacheable_by_reason{};
};

} // namespace regcache
