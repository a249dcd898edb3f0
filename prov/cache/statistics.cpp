// SPDX-License-Identifier: BSD-2-Clause
// Reads the counters. They are read one after the other, so that sums may be off by what happens meanwhile.
#include "cache/cache.hpp"

namespace regcache {

StatisticsSnapshot Cache::statistics() const noexcept
{
    StatisticsSnapshot now;
    now.hits = statistics_.hits.load_relaxed();
    now.misses = statistics_.misses.load_relaxed();
    now.passed_through = statistics_.passed_through.load_relaxed();
    now.asked = now.hits + now.misses + now.passed_through;
    now.invalidations = statistics_.invalidations.load_relaxed();
    now.evictions = statistics_.evictions.load_relaxed();
    now.overtaken = statistics_.overtaken.load_relaxed();
    now.not_admitted = statistics_.not_admitted.load_relaxed();
    now.unconfirmed = statistics_.unconfirmed.load_relaxed();
    now.events = statistics_.events.load_relaxed();
    now.lost = statistics_.lost.load_relaxed();
    now.confirm_waits = source_->confirm_waits();
    now.registrations = statistics_.registrations.load_relaxed();
    now.refused_below = statistics_.refused_below.load_relaxed();
    now.failed_deregistrations = statistics_.failed_deregistrations.load_relaxed();
    now.pinned_bytes = statistics_.pinned_bytes.load_relaxed();
    now.most_pinned_bytes = statistics_.most_pinned_bytes.load_relaxed();
    for (unsigned i = 0; i < kWatchAnswers; ++i) {
        now.uncacheable_by_reason[i] = statistics_.uncacheable[i].load_relaxed();
        now.uncacheable += now.uncacheable_by_reason[i];
    }
    return now;
}

} // namespace regcache
