// SPDX-License-Identifier: BSD-2-Clause
// In which order threads see each other's writes: the only file that names a memory order. The order is in the method's
// name. With REGCACHE_RELACY the same classes stand over relacy's atomics, so that model programs run the headers that
// the product runs.
#pragma once

#ifdef REGCACHE_RELACY
#include <relacy/relacy_std.hpp>
#define REGCACHE_ORDER(order) rl::mo_##order, $
#define REGCACHE_STD rl
#else
#include <atomic>
#define REGCACHE_ORDER(order) std::memory_order_##order
#define REGCACHE_STD std
#endif

namespace regcache {

template <class T>
class Atomic {
public:
    Atomic() noexcept : value_(T{}) {}
    explicit Atomic(T value) noexcept : value_(value) {}
    Atomic(const Atomic &) = delete;
    Atomic &operator=(const Atomic &) = delete;

    T load_relaxed() const noexcept { return value_.load(REGCACHE_ORDER(relaxed)); }
    T load_acquire() const noexcept { return value_.load(REGCACHE_ORDER(acquire)); }
    // Takes part in the one order of all seq_cst operations.
    T load_ordered() const noexcept { return value_.load(REGCACHE_ORDER(seq_cst)); }

    void store_relaxed(T value) noexcept { value_.store(value, REGCACHE_ORDER(relaxed)); }
    void store_release(T value) noexcept { value_.store(value, REGCACHE_ORDER(release)); }
    void store_ordered(T value) noexcept { value_.store(value, REGCACHE_ORDER(seq_cst)); }

    T add_relaxed(T amount) noexcept { return value_.fetch_add(amount, REGCACHE_ORDER(relaxed)); }
    T add_release(T amount) noexcept { return value_.fetch_add(amount, REGCACHE_ORDER(release)); }
    T add_ordered(T amount) noexcept { return value_.fetch_add(amount, REGCACHE_ORDER(seq_cst)); }
    T or_relaxed(T bits) noexcept { return value_.fetch_or(bits, REGCACHE_ORDER(relaxed)); }
    T exchange_ordered(T value) noexcept { return value_.exchange(value, REGCACHE_ORDER(seq_cst)); }

    // Only where one thread at a time writes (others may read): cheaper than an atomic addition.
    void add_alone(T amount) noexcept { store_relaxed(load_relaxed() + amount); }

private:
    REGCACHE_STD::atomic<T> value_;
};

// Loads before it stay before loads and stores after it.
inline void fence_acquire() noexcept { REGCACHE_STD::atomic_thread_fence(REGCACHE_ORDER(acquire)); }
// Loads and stores before it stay before stores after it.
inline void fence_release() noexcept { REGCACHE_STD::atomic_thread_fence(REGCACHE_ORDER(release)); }

} // namespace regcache
