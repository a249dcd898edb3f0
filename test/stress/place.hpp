// SPDX-License-Identifier: BSD-2-Clause
// Addresses that a test gives away and takes again: where the kernel puts nothing by itself. Maps nothing there.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace regcache::test {

// The kernel takes the highest gap that is large enough. So a gap between mappings would be somebody's soon; this is an
// address far below the lowest one in use.
inline char *untouched_addresses(std::size_t bytes)
{
    constexpr std::uintptr_t kBelow = std::uintptr_t{16} << 30;
    void *const probe = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (probe == MAP_FAILED) {
        std::perror("mmap");
        std::exit(1);
    }
    munmap(probe, bytes);
    return static_cast<char *>(probe) - kBelow;
}

} // namespace regcache::test
