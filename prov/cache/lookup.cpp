// SPDX-License-Identifier: BSD-2-Clause
// The hit path, and nothing else: look at the queue, find a region, count its user.
#include "cache/cache.hpp"

namespace regcache {

int Cache::acquire(const void *buffer, std::size_t bytes, Rights rights, Match match, Region **region) noexcept
{
    const Range request = Range::of(buffer, bytes);
    if (!is_off_.load_relaxed()) {
        // Asked before the lock is taken: a change that was finished when the caller came is told by it.
        std::uint64_t position = 0;
        const bool is_known = source_->try_position(position);
        const LockGuard guard(mutex_);
        if (position > drained_) {
            drain();
            drained_ = position;
        }
        if (!is_known)
            count_unconfirmed();
        else if ((*region = find(request, rights, match)))
            return 0;
    }
    return miss(request, rights, match, region);
}

// Without a position nothing in the index may be handed out; a new registration is always right.
void Cache::count_unconfirmed() noexcept
{
    ++uses_;
    statistics_.misses.add_alone(1);
    statistics_.unconfirmed.add_alone(1);
}

Region *Cache::find(Range request, Rights rights, Match match) noexcept
{
    ++uses_;
    const auto serves = [&](const Region &region) {
        return covers(region.rights, rights) && (match == Match::Anywhere || region.range.begin == request.begin);
    };
    // For no bytes, or for more than the address space has, the lower provider's answer counts.
    Region *const found = request.is_empty() ? nullptr : index_.find(request, serves);
    if (!found) {
        statistics_.misses.add_alone(1);
        return nullptr;
    }
    statistics_.hits.add_alone(1);
    if (found->users++ == 0)
        idle_.erase(*found);
    found->last_use = uses_;
    return found;
}

void Cache::release(Region *region) noexcept
{
    if (is_off_.load_relaxed()) {
        if (region->is_made_when_off)
            end(region);
        return;
    }
    {
        const LockGuard guard(mutex_);
        if (--region->users != 0)
            return;
        if (region->state == RegionState::Cached && (region->rights & options_.ends_with_use) == 0 && fits(0)) {
            idle_.push_back(*region);
            return;
        }
        if (region->state == RegionState::Cached)
            forget(*region);
    }
    end(region);
}

} // namespace regcache
