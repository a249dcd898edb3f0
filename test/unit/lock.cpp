// SPDX-License-Identifier: BSD-2-Clause
// sys/lock.hpp: threads exclude each other; debug builds abort when a rule is broken.
#include "sys/lock.hpp"

#include "support/skip.hpp"

#include <csignal>
#include <thread>
#include <vector>

#include <criterion/criterion.h>

using namespace regcache;
using namespace regcache::test;

Test(lock, threads_exclude_each_other)
{
    Mutex mutex(Rank::Cache);
    unsigned long count = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 50'000; ++i) {
                const LockGuard guard(mutex);
                ++count;
            }
        });
    for (std::thread &thread : threads)
        thread.join();
    cr_expect(count == 200'000);
}

Test(lock, rising_ranks_are_allowed)
{
    Mutex registry(Rank::Registry), watches(Rank::Watches), cache(Rank::Cache);
    for (int i = 0; i < 2; ++i) {
        const LockGuard first(registry);
        const LockGuard second(watches);
        const LockGuard third(cache);
    }
    assert_no_lock_held();
}

Test(lock, each_thread_has_its_own_ranks) REGCACHE_UNCHECKED
{
    Mutex mine(Rank::Cache), other(Rank::Watches);
    const LockGuard guard(mine);
    std::thread([&] {
        assert_no_lock_held();
        const LockGuard theirs(other);
    }).join();
}

Test(lock, caches_are_locked_together_before_a_fork) REGCACHE_UNCHECKED
{
    Mutex first(Rank::Cache), second(Rank::Cache);
    first.lock_for_fork();
    second.lock_for_fork();
    second.unlock();
    first.unlock();
    assert_no_lock_held();
}

// Where the rules aren't checked there is nothing to see, and a test that is to end with a signal can't skip itself.
#ifdef REGCACHE_DEBUG

Test(lock_checks, falling_ranks_abort, .signal = SIGABRT)
{
    Mutex watches(Rank::Watches), cache(Rank::Cache);
    const LockGuard first(cache);
    const LockGuard second(watches);
}

Test(lock_checks, equal_ranks_abort, .signal = SIGABRT)
{
    Mutex one(Rank::Cache), two(Rank::Cache);
    const LockGuard first(one);
    const LockGuard second(two);
}

Test(lock_checks, lock_held_where_none_may_be_aborts, .signal = SIGABRT)
{
    Mutex registry(Rank::Registry);
    const LockGuard guard(registry);
    assert_no_lock_held();
}

#else

Test(lock_checks, are_made_in_debug_builds)
{
    skip("ranks are checked in debug builds: configure with --enable-debug");
}

#endif
