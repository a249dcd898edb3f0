// SPDX-License-Identifier: BSD-2-Clause
// How threads exclude each other: a mutex with a rank, known to clang's thread-safety analysis. Debug builds abort when
// ranks are taken out of order. A thread that holds one of these changes no address space and doesn't call the lower
// provider (assert_no_lock_held).
#pragma once

#include <pthread.h>

#if defined(__clang__)
#define REGCACHE_TSA(x) __attribute__((x))
#else
#define REGCACHE_TSA(x)
#endif
#define REGCACHE_CAPABILITY(x) REGCACHE_TSA(capability(x))
#define REGCACHE_SCOPED REGCACHE_TSA(scoped_lockable)
#define REGCACHE_GUARDED_BY(x) REGCACHE_TSA(guarded_by(x))
#define REGCACHE_REQUIRES(...) REGCACHE_TSA(requires_capability(__VA_ARGS__))
#define REGCACHE_EXCLUDES(...) REGCACHE_TSA(locks_excluded(__VA_ARGS__))
#define REGCACHE_ACQUIRE(...) REGCACHE_TSA(acquire_capability(__VA_ARGS__))
#define REGCACHE_RELEASE(...) REGCACHE_TSA(release_capability(__VA_ARGS__))
#define REGCACHE_TRY_ACQUIRE(...) REGCACHE_TSA(try_acquire_capability(__VA_ARGS__))
#define REGCACHE_UNCHECKED REGCACHE_TSA(no_thread_safety_analysis)

namespace regcache {

// Locks are taken in rising order only.
enum class Rank : unsigned {
    Registry = 1, // which objects must be told of a fork
    Watches = 2,  // which ranges an event source watches
    Cache = 3,    // one cache's regions; two caches' locks are held together only while forking
};

class REGCACHE_CAPABILITY("mutex") Mutex {
public:
    explicit Mutex(Rank rank) noexcept : rank_(rank) {}
    Mutex(const Mutex &) = delete;
    Mutex &operator=(const Mutex &) = delete;
    ~Mutex() { pthread_mutex_destroy(&mutex_); }

    void lock() noexcept REGCACHE_ACQUIRE()
    {
        check_rank();
        pthread_mutex_lock(&mutex_);
        note_held();
    }
    // Before a fork only, where the locks of several caches are held at once; ended by unlock().
    void lock_for_fork() noexcept REGCACHE_ACQUIRE()
    {
        pthread_mutex_lock(&mutex_);
        note_held();
    }
    void unlock() noexcept REGCACHE_RELEASE()
    {
        note_released();
        pthread_mutex_unlock(&mutex_);
    }

private:
#ifdef REGCACHE_DEBUG
    void check_rank() const noexcept;
    void note_held() const noexcept;
    void note_released() const noexcept;
#else
    void check_rank() const noexcept {}
    void note_held() const noexcept {}
    void note_released() const noexcept {}
#endif

    pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
    [[maybe_unused]] Rank rank_;
};

class REGCACHE_SCOPED LockGuard {
public:
    explicit LockGuard(Mutex &mutex) noexcept REGCACHE_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
    ~LockGuard() REGCACHE_RELEASE() { mutex_.unlock(); }
    LockGuard(const LockGuard &) = delete;
    LockGuard &operator=(const LockGuard &) = delete;

private:
    Mutex &mutex_;
};

// Aborts, in debug builds, when the calling thread holds any lock of ours. Stands before each call that may change the
// address space or enter the lower provider.
#ifdef REGCACHE_DEBUG
void assert_no_lock_held() noexcept;
#else
inline void assert_no_lock_held() noexcept {}
#endif

} // namespace regcache
