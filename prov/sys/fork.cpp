// SPDX-License-Identifier: BSD-2-Clause
// Keeps the list of those who are told of a fork, with one set of pthread_atfork handlers for all.
#include "sys/fork.hpp"

#include "sys/atomic.hpp"
#include "sys/lock.hpp"

#include <pthread.h>

namespace regcache {

// Owns nothing. The lock is held from before a fork until after it, so that the list is whole in the child.
class ForkRegistry {
public:
    void add(ForkListener &listener) noexcept
    {
        pthread_once(&handlers_, [] { pthread_atfork(before, in_parent, in_child); });
        const LockGuard guard(mutex_);
        listener.previous_ = last_;
        (last_ ? last_->next_ : first_) = &listener;
        last_ = &listener;
    }

    void remove(ForkListener &listener) noexcept
    {
        const LockGuard guard(mutex_);
        (listener.previous_ ? listener.previous_->next_ : first_) = listener.next_;
        (listener.next_ ? listener.next_->previous_ : last_) = listener.previous_;
        listener.previous_ = listener.next_ = nullptr;
    }

    unsigned generation() const noexcept { return generation_.load_relaxed(); }

private:
    static void before() noexcept REGCACHE_UNCHECKED;
    static void in_parent() noexcept REGCACHE_UNCHECKED;
    static void in_child() noexcept REGCACHE_UNCHECKED;

    pthread_once_t handlers_ = PTHREAD_ONCE_INIT;
    Mutex mutex_{Rank::Registry};
    ForkListener *first_ REGCACHE_GUARDED_BY(mutex_) = nullptr;
    ForkListener *last_ REGCACHE_GUARDED_BY(mutex_) = nullptr;
    Atomic<unsigned> generation_{0u};
};

namespace {

ForkRegistry registry;

} // namespace

void ForkRegistry::before() noexcept
{
    registry.mutex_.lock();
    for (ForkListener *each = registry.first_; each; each = each->next_)
        each->before_fork();
}

void ForkRegistry::in_parent() noexcept
{
    for (ForkListener *each = registry.last_; each; each = each->previous_)
        each->after_fork_in_parent();
    registry.mutex_.unlock();
}

void ForkRegistry::in_child() noexcept
{
    registry.generation_.add_relaxed(1);
    for (ForkListener *each = registry.last_; each; each = each->previous_)
        each->after_fork_in_child();
    registry.mutex_.unlock();
}

void add_fork_listener(ForkListener &listener) noexcept
{
    registry.add(listener);
}

void remove_fork_listener(ForkListener &listener) noexcept
{
    registry.remove(listener);
}

unsigned fork_generation() noexcept
{
    return registry.generation();
}

} // namespace regcache
