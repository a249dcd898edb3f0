// SPDX-License-Identifier: BSD-2-Clause
// Which regions go when there is no room, and how a region ends.
#include "cache/cache.hpp"

#include "sys/log.hpp"

#include <ctime>

namespace regcache {

bool Cache::fits(std::size_t more_bytes) const noexcept
{
    const std::size_t more_count = more_bytes != 0 ? 1 : 0;
    return count_ + more_count <= options_.limits.max_count && bytes_ + more_bytes <= options_.limits.max_bytes;
}

// Whether a new region is worth an old one. A program that goes round a working set a little larger than the limit would
// evict each region just before it is needed; when the oldest one was used that lately, only one newcomer in kAdmitEvery
// is let in, and most of the set stays.
bool Cache::admits(std::size_t bytes) noexcept
{
    constexpr std::uint64_t kRoundsOfPatience = 2;
    constexpr std::uint32_t kAdmitEvery = 16;
    if (fits(bytes))
        return true;
    if (bytes > options_.limits.max_bytes)
        return false;
    const Region *const oldest = idle_.first();
    if (!oldest)
        return false;
    if (uses_ - oldest->last_use > kRoundsOfPatience * (count_ + 1))
        return true;
    return ++misses_when_full_ % kAdmitEvery == 0;
}

void Cache::make_room(std::size_t bytes, RegionList &victims) noexcept
{
    while (!fits(bytes)) {
        Region *const oldest = idle_.pop_front();
        if (!oldest)
            return;
        forget(*oldest);
        victims.push_back(*oldest);
        statistics_.evictions.add_alone(1);
    }
}

// Regions inside the new one that can do no more than it does: buffers that grow would pile them up.
void Cache::take_covered(const Region &region, RegionList &victims) noexcept
{
    RegionList covered;
    // Unchecked: mutex_ is held here, but the analysis doesn't see that through the index's own code.
    index_.each_overlap(region.range, [&](Region &other) REGCACHE_UNCHECKED {
        if (other.users == 0 && region.range.contains(other.range) && covers(region.rights, other.rights)) {
            idle_.erase(other);
            covered.push_back(other);
        }
    });
    while (Region *other = covered.pop_front()) {
        forget(*other);
        victims.push_back(*other);
        statistics_.evictions.add_alone(1);
    }
}

// The lower provider has no room: gives it what nobody uses, the stale ones first, then an eighth of the idle ones.
// False when there was nothing to give, nothing on its way, and no more has ended than before the refusal.
bool Cache::evict_for_refusal(std::uint64_t ended_before) noexcept
{
    RegionList victims;
    {
        const LockGuard guard(mutex_);
        victims.take(stale_);
        if (victims.is_empty()) {
            for (std::size_t left = count_ / 8 + 1; left > 0; --left) {
                Region *const oldest = idle_.pop_front();
                if (!oldest)
                    break;
                forget(*oldest);
                victims.push_back(*oldest);
                statistics_.evictions.add_alone(1);
            }
        }
    }
    if (!victims.is_empty()) {
        bury(victims);
        return true;
    }
    // Another thread may be giving regions back at this moment.
    for (int turn = 0; turn < 1000 && ending_.load_relaxed() != 0; ++turn) {
        if (ended_.load_relaxed() != ended_before)
            return true;
        const timespec pause{0, 100'000};
        nanosleep(&pause, nullptr);
    }
    return ended_.load_relaxed() != ended_before;
}

void Cache::bury(RegionList &dead) noexcept
{
    while (Region *region = dead.pop_front())
        end(region);
}

// The region is in no list and has no user.
void Cache::end(Region *region) noexcept
{
    assert_no_lock_held();
    ending_.add_relaxed(1);
    if (const int error = lower_.deregister(region->registration); error != 0) {
        if (statistics_.failed_deregistrations.add_relaxed(1) == 0)
            log(LogLevel::Warning, "%s: the lower provider can't deregister %zu bytes at %#zx (error %d): they stay pinned "
                                   "(said once)",
                options_.name, region->range.size(), region->range.begin, -error);
    } else {
        statistics_.pinned_bytes.add_relaxed(-static_cast<std::uint64_t>(region->range.size()));
    }
    // Watched until its pages are unpinned, so that no change in between could go unseen.
    if (!region->watched.range.is_empty())
        source_->unwatch(region->watched);
    delete region;
    ended_.add_relaxed(1);
    ending_.add_relaxed(-1u);
}

} // namespace regcache
