// SPDX-License-Identifier: BSD-2-Clause
// What is done while the application calls nothing: freed memory is unpinned soon. Also the begin and the end of a cache.
#include "cache/cache.hpp"

#include <ctime>
#include <utility>

namespace regcache {

Cache::Cache(const CacheOptions &options, std::shared_ptr<Source> source, Lower &lower)
    : options_(options), source_(std::move(source)), lower_(lower), cursor_(source_->end()),
      keeper_(*this, source_->bell(), source_->look_every_ms())
{
    keeper_.start();
    add_fork_listener(*this);
}

Cache::~Cache()
{
    remove_fork_listener(*this);
    if (is_off_.load_relaxed())
        return; // the registrations are the parent's
    keeper_.stop();
    flush();
}

void Cache::stop() noexcept
{
    if (is_off_.load_relaxed())
        return;
    is_off_.store_relaxed(true);
    keeper_.stop();
    source_->stop();
}

void Cache::flush() noexcept
{
    if (is_off_.load_relaxed())
        return;
    RegionList dead;
    {
        const LockGuard guard(mutex_);
        drain();
        while (Region *region = idle_.pop_front()) {
            forget(*region);
            dead.push_back(*region);
        }
        dead.take(stale_);
    }
    bury(dead);
    // The keeper may be giving back others at this moment.
    while (ending_.load_relaxed() != 0) {
        const timespec pause{0, 50'000};
        nanosleep(&pause, nullptr);
    }
}

void Cache::keep_house() noexcept
{
    RegionList dead;
    {
        const LockGuard guard(mutex_);
        drain();
        dead.take(stale_);
        ending_.add_relaxed(1); // before the lock is free: flush() must not miss what we took
    }
    bury(dead);
    ending_.add_relaxed(-1u);
}

void Keeper::start()
{
    thread_.start("regcache-keeper", [](void *self) { static_cast<Keeper *>(self)->run(); }, this);
}

void Keeper::stop() noexcept
{
    is_stopping_.store_ordered(true);
    stop_bell_.ring();
    bell_.ring();
    thread_.join();
}

void Keeper::run() noexcept
{
    for (;;) {
        const std::uint32_t events_seen = bell_.rings();
        const std::uint32_t stop_seen = stop_bell_.rings();
        if (is_stopping_.load_ordered())
            return;
        cache_.keep_house();
        stop_bell_.wait(stop_seen, kRestMs);
        if (!is_stopping_.load_ordered())
            bell_.wait(events_seen, look_every_ms_);
    }
}

void Cache::before_fork() noexcept
{
    mutex_.lock_for_fork();
}

void Cache::after_fork_in_parent() noexcept
{
    mutex_.unlock();
}

void Cache::after_fork_in_child() noexcept
{
    is_off_.store_relaxed(true);
    keeper_.forget();
    mutex_.unlock();
}

} // namespace regcache
