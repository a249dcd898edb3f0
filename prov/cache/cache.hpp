// SPDX-License-Identifier: BSD-2-Clause
// When a registration may be used again: the cache of one domain. What a hit does is in lookup.cpp, the rest of a
// registration's life in miss.cpp, invalidate.cpp, evict.cpp and housekeeping.cpp.
#pragma once

#include "cache/keeper.hpp"
#include "cache/list.hpp"
#include "cache/lower.hpp"
#include "cache/quarantine.hpp"
#include "cache/region.hpp"
#include "cache/statistics.hpp"
#include "index/interval_tree.hpp"
#include "sys/atomic.hpp"
#include "sys/fork.hpp"
#include "sys/lock.hpp"
#include "vm/source.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace regcache {

struct CacheLimits {
    std::size_t max_count = SIZE_MAX; // registrations held by the cache
    std::size_t max_bytes = SIZE_MAX; // bytes in them
};

struct CacheOptions {
    CacheLimits limits;
    // A region with any of these rights ends with its last user (a remote key must not outlive fi_close); 0: none does.
    Rights ends_with_use = 0;
    // Names the cache in log lines.
    const char *name = "";
};

// Which part of a region a request may use.
enum class Match : std::uint8_t {
    Anywhere,  // any region that contains the request
    SameStart, // only one that begins at the request's first byte (offsets are counted from there)
};

// Invariants: a region in the index was watched before it was registered, and every event up to drained_ has been applied
// to it; a region that an event touched is never handed out again. Any thread may call any member. The lower provider is
// called with no lock held. In a forked child the cache is off: acquire() registers below and keeps nothing, release()
// of an inherited region does nothing.
class Cache final : private ForkListener {
public:
    // Throws Error or std::bad_alloc. `source` is shared with other caches, `lower` outlives the cache.
    Cache(const CacheOptions &options, std::shared_ptr<Source> source, Lower &lower);
    // Every region must have been released. Deregisters all that is left.
    ~Cache();

    // Gives a region that contains [buffer, buffer + bytes) with at least `rights`; each success is ended by one
    // release(). 0, or the lower provider's negative error code. Never fails because of a limit of the cache.
    int acquire(const void *buffer, std::size_t bytes, Rights rights, Match match, Region **region) noexcept;
    void release(Region *region) noexcept;

    // Makes sure that the region is handed out to nobody else. False if somebody else uses it already.
    bool take_out(Region &region) noexcept;

    // Forgets every region that nobody uses; when it returns, all of them are deregistered.
    void flush() noexcept;

    // Ends it for good at the end of the process, while regions may be in use: its thread and its source. From then on
    // acquire() keeps nothing and release() does nothing; what was registered stays with the lower provider.
    void stop() noexcept;

    // Counts a request that was passed through without asking the cache.
    void count_passed_through() noexcept { statistics_.passed_through.add_relaxed(1); }

    StatisticsSnapshot statistics() const noexcept;
    Source &source() noexcept { return *source_; }

private:
    friend class Keeper;
    using RegionList = List<Region, &Region::in_list>;

    // lookup.cpp
    Region *find(Range request, Rights rights, Match match) noexcept REGCACHE_REQUIRES(mutex_);
    void count_unconfirmed() noexcept REGCACHE_REQUIRES(mutex_);
    // miss.cpp
    int miss(Range request, Rights rights, Match match, Region **region) noexcept;
    int register_below(Region &region) noexcept;
    void insert(Region &region, Match match, EventQueue::Cursor since) noexcept;
    bool was_overtaken(Range watched, EventQueue::Cursor since) noexcept REGCACHE_REQUIRES(mutex_);
    void explain_uncached(Watch answer, Range range) noexcept;
    void explain_too_large(Range range) noexcept;
    // invalidate.cpp
    void drain() noexcept REGCACHE_REQUIRES(mutex_);
    void invalidate(Range range) noexcept REGCACHE_REQUIRES(mutex_);
    void forget(Region &region) noexcept REGCACHE_REQUIRES(mutex_);
    // evict.cpp
    bool fits(std::size_t more_bytes) const noexcept REGCACHE_REQUIRES(mutex_);
    bool admits(std::size_t bytes) noexcept REGCACHE_REQUIRES(mutex_);
    void take_covered(const Region &region, RegionList &victims) noexcept REGCACHE_REQUIRES(mutex_);
    void make_room(std::size_t bytes, RegionList &victims) noexcept REGCACHE_REQUIRES(mutex_);
    bool evict_for_refusal(std::uint64_t ended_before) noexcept;
    void bury(RegionList &dead) noexcept;
    void end(Region *region) noexcept;
    // housekeeping.cpp
    void keep_house() noexcept;

    void before_fork() noexcept override REGCACHE_UNCHECKED;
    void after_fork_in_parent() noexcept override REGCACHE_UNCHECKED;
    void after_fork_in_child() noexcept override REGCACHE_UNCHECKED;

    const CacheOptions options_;
    const std::shared_ptr<Source> source_;
    Lower &lower_;

    Mutex mutex_{Rank::Cache};
    IntervalTree<Region> index_ REGCACHE_GUARDED_BY(mutex_);
    RegionList idle_ REGCACHE_GUARDED_BY(mutex_);  // in the index, used by nobody; the longest idle first
    RegionList stale_ REGCACHE_GUARDED_BY(mutex_); // out of the index, used by nobody, for the keeper to end
    Quarantine quarantine_ REGCACHE_GUARDED_BY(mutex_);
    std::uint64_t drained_ REGCACHE_GUARDED_BY(mutex_) = 0;      // the source's position up to which events are applied
    EventQueue::Cursor cursor_ REGCACHE_GUARDED_BY(mutex_);      // the next event to read
    std::size_t count_ REGCACHE_GUARDED_BY(mutex_) = 0;          // regions in the index
    std::size_t bytes_ REGCACHE_GUARDED_BY(mutex_) = 0;          // bytes in them
    std::uint64_t uses_ REGCACHE_GUARDED_BY(mutex_) = 0;         // acquire() calls: the clock of victim choice
    std::uint32_t misses_when_full_ REGCACHE_GUARDED_BY(mutex_) = 0;

    Statistics statistics_;
    Atomic<unsigned> explained_{0u}; // bit for each Watch answer that has been logged, and one for size
    Atomic<unsigned> ending_{0u};                // regions that threads are giving back at this moment
    Atomic<std::uint64_t> ended_{std::uint64_t{0}}; // regions given back so far
    Atomic<bool> is_off_{false}; // in a forked child, or after stop()
    Keeper keeper_; // last: its thread uses all of the above
};

} // namespace regcache
