// SPDX-License-Identifier: BSD-2-Clause
// How one thread wakes another that may or may not be asleep: a futex word. Ringing costs no system call while nobody
// sleeps.
#pragma once

#include "sys/atomic.hpp"

#include <cstdint>

namespace regcache {

//   rings_   counts rings, so that one between looking and sleeping isn't missed
//   sleepers_ 0: ring() needs no system call
class Bell {
public:
    std::uint32_t rings() const noexcept { return rings_.load_ordered(); }
    // Any thread; takes no lock and allocates nothing.
    void ring() noexcept
    {
        rings_.add_ordered(1); // [asleep] before sleepers_ is read
        if (sleepers_.load_ordered() != 0)
            wake();
    }
    // Sleeps until a ring after `seen` was read with rings(), or until the time has passed. May return early.
    void wait(std::uint32_t seen, unsigned timeout_ms) noexcept;

private:
    void wake() noexcept;

    Atomic<std::uint32_t> rings_{0u};
    Atomic<std::uint32_t> sleepers_{0u};
};

// The monotonic clock.
std::uint64_t now_ns() noexcept;

} // namespace regcache
