// SPDX-License-Identifier: BSD-2-Clause
// Checks, in debug builds, that locks are taken in the order of their ranks and that none is held where that is promised.
#include "sys/lock.hpp"

#ifdef REGCACHE_DEBUG

#include <cstdio>
#include <cstdlib>

namespace regcache {
namespace {

constexpr unsigned kRanks = 4;
thread_local unsigned held[kRanks];

[[noreturn]] void fail(const char *what, Rank rank)
{
    std::fprintf(stderr, "regcache: %s (rank %u)\n", what, static_cast<unsigned>(rank));
    std::abort();
}

} // namespace

void Mutex::check_rank() const noexcept
{
    for (auto rank = static_cast<unsigned>(rank_); rank < kRanks; ++rank)
        if (held[rank] != 0)
            fail("a lock is taken out of order", rank_);
}

void Mutex::note_held() const noexcept
{
    ++held[static_cast<unsigned>(rank_)];
}

void Mutex::note_released() const noexcept
{
    --held[static_cast<unsigned>(rank_)];
}

void assert_no_lock_held() noexcept
{
    for (unsigned rank = 0; rank < kRanks; ++rank)
        if (held[rank] != 0)
            fail("the address space may be changed with a lock held", static_cast<Rank>(rank));
}

} // namespace regcache

#endif
