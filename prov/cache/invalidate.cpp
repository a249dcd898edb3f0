// SPDX-License-Identifier: BSD-2-Clause
// What an event does to the regions that it touches.
#include "cache/cache.hpp"

namespace regcache {

void Cache::drain() noexcept
{
    for (;;) {
        Event event;
        switch (source_->next(cursor_, event)) {
        case EventQueue::Next::Empty:
            return;
        case EventQueue::Next::Lost:
            // What was lost may have been of any kind.
            statistics_.lost.add_alone(1);
            quarantine_.add_everything(now_ns());
            invalidate(Range::everything());
            break;
        case EventQueue::Next::One:
            statistics_.events.add_alone(1);
            if (event.change == Change::Arrived)
                break;
            if (event.change == Change::Going)
                quarantine_.add(event.range, now_ns());
            invalidate(event.range);
        }
    }
}

void Cache::invalidate(Range range) noexcept
{
    while (Region *region = index_.any_overlap(range)) {
        statistics_.invalidations.add_alone(1);
        if (region->users == 0) {
            idle_.erase(*region);
            forget(*region);
            stale_.push_back(*region);
        } else {
            forget(*region); // its last user ends it
        }
    }
}

bool Cache::take_out(Region &region) noexcept
{
    const LockGuard guard(mutex_);
    if (region.users != 1)
        return false;
    if (region.state == RegionState::Cached)
        forget(region);
    return true;
}

// Takes a region out of the index for good. Idle ones have left the idle list before.
void Cache::forget(Region &region) noexcept
{
    index_.erase(region);
    region.state = RegionState::Gone;
    --count_;
    bytes_ -= region.range.size();
}

} // namespace regcache
