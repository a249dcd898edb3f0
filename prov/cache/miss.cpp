// SPDX-License-Identifier: BSD-2-Clause
// What happens when no region serves a request: watch, register, look again, and keep the region if it may be kept.
#include "cache/cache.hpp"

#include "sys/log.hpp"

#include <cerrno>
#include <new>

namespace regcache {

int Cache::miss(Range request, Rights rights, Match match, Region **result) noexcept
{
    assert_no_lock_held();
    const Range pages = request.is_empty() ? Range{} : whole_pages(request, page_size());
    auto *const region = new (std::nothrow) Region;
    if (!region)
        return -ENOMEM;
    region->range = match == Match::SameStart || pages.is_empty() ? request : pages;
    region->rights = rights;
    region->users = 1;
    region->watched.range = pages;

    // Taken before the range is watched: from the watch on, each change has an event behind it.
    const EventQueue::Cursor since = source_->end();
    region->is_made_when_off = is_off_.load_relaxed();
    const Watch answer = region->is_made_when_off || pages.is_empty() ? Watch::NoEvents : source_->watch(region->watched);
    if (answer != Watch::Watched) {
        region->watched.range = {};
        statistics_.uncacheable[static_cast<unsigned>(answer)].add_relaxed(1);
        explain_uncached(answer, pages);
    }
    // Watched first: a change between registering and watching would go unseen.
    if (const int error = register_below(*region); error != 0) {
        if (answer == Watch::Watched)
            source_->unwatch(region->watched);
        delete region;
        return error;
    }
    if (answer == Watch::Watched)
        insert(*region, match, since);
    *result = region;
    return 0;
}

int Cache::register_below(Region &region) noexcept
{
    for (;;) {
        const std::uint64_t ended = ended_.load_relaxed(); // before it is refused: what ends later makes room
        const int error = lower_.register_range(region.range, region.rights, &region.registration);
        if (error == 0) {
            statistics_.registrations.add_relaxed(1);
            const std::uint64_t pinned = statistics_.pinned_bytes.add_relaxed(region.range.size()) + region.range.size();
            if (pinned > statistics_.most_pinned_bytes.load_relaxed())
                statistics_.most_pinned_bytes.store_relaxed(pinned);
            return 0;
        }
        statistics_.refused_below.add_relaxed(1);
        const bool is_full = error == -ENOMEM || error == -EAGAIN || error == -ENOSPC;
        if (!is_full || is_off_.load_relaxed() || !evict_for_refusal(ended))
            return error;
    }
}

// Puts a registration into the index unless its memory changed while it was made.
void Cache::insert(Region &region, Match match, EventQueue::Cursor since) noexcept
{
    if (region.range.size() > options_.limits.max_bytes)
        explain_too_large(region.range);
    RegionList victims;
    {
        const LockGuard guard(mutex_);
        drain(); // events of the range's earlier life must not find the new region
        if (was_overtaken(region.watched.range, since)) {
            statistics_.overtaken.add_alone(1);
            return;
        }
        if (!admits(region.range.size())) {
            statistics_.not_admitted.add_alone(1);
            return;
        }
        if (match == Match::Anywhere)
            take_covered(region, victims);
        make_room(region.range.size(), victims);
        if (fits(region.range.size())) {
            index_.insert(region);
            region.state = RegionState::Cached;
            region.last_use = uses_;
            ++count_;
            bytes_ += region.range.size();
        } else {
            statistics_.not_admitted.add_alone(1);
        }
    }
    bury(victims);
}

bool Cache::was_overtaken(Range watched, EventQueue::Cursor since) noexcept
{
    if (quarantine_.may_hold() && quarantine_.holds(watched, now_ns()))
        return true;
    for (;;) {
        Event event;
        switch (source_->next(since, event)) {
        case EventQueue::Next::Empty:
            return false;
        case EventQueue::Next::Lost:
            return true;
        case EventQueue::Next::One:
            if (event.change != Change::Arrived && event.range.overlaps(watched))
                return true;
        }
    }
}

// Once for each reason: that memory isn't cached is the first thing to know when a program is slow.
void Cache::explain_uncached(Watch answer, Range range) noexcept
{
    const unsigned bit = 1u << static_cast<unsigned>(answer);
    if (answer == Watch::NoEvents || (explained_.or_relaxed(bit) & bit) != 0)
        return;
    log(LogLevel::Warning, "%s: memory at %#zx, %zu bytes, isn't cached: %s (said once)", options_.name, range.begin,
        range.size(), describe(answer));
}

void Cache::explain_too_large(Range range) noexcept
{
    constexpr unsigned bit = 1u << kWatchAnswers;
    if ((explained_.or_relaxed(bit) & bit) == 0)
        log(LogLevel::Warning, "%s: memory at %#zx, %zu bytes, isn't cached: the cache holds at most %zu bytes; raise "
                               "FI_REGCACHE_MAX_SIZE, or what the process may lock (said once)",
            options_.name, range.begin, range.size(), options_.limits.max_bytes);
}

} // namespace regcache
