// SPDX-License-Identifier: BSD-2-Clause
// Sleeps on a futex and wakes its sleepers.
#include "sys/bell.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace regcache {

static_assert(sizeof(Atomic<std::uint32_t>) == sizeof(std::uint32_t), "the kernel reads the word itself");

void Bell::wait(std::uint32_t seen, unsigned timeout_ms) noexcept
{
    const timespec timeout{static_cast<time_t>(timeout_ms / 1000), static_cast<long>(timeout_ms % 1000) * 1'000'000};
    sleepers_.add_ordered(1); // [asleep] before the kernel compares rings_
    syscall(SYS_futex, &rings_, FUTEX_WAIT_PRIVATE, seen, &timeout, nullptr, 0);
    sleepers_.add_ordered(static_cast<std::uint32_t>(-1));
}

void Bell::wake() noexcept
{
    syscall(SYS_futex, &rings_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

std::uint64_t now_ns() noexcept
{
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

} // namespace regcache
