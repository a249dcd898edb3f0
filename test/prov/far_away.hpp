// SPDX-License-Identifier: BSD-2-Clause
// Memory at addresses that a test can give away and take again: nothing else in the process comes there.
#pragma once

#include "support/memory.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace regcache::test {

// Address space that was never used before. The kernel maps what may be anywhere as high as it fits, far above this: so
// neither another thread nor a sanitizer's run time is given an address here that is free for a moment.
inline char *far_away(std::size_t bytes)
{
    static std::atomic<std::uintptr_t> next{std::uintptr_t{0x2000} << 32};
    constexpr std::size_t kStep = std::size_t{2} << 20; // no two share a huge page
    return reinterpret_cast<char *>(next.fetch_add((bytes / kStep + 2) * kStep));
}

// Memory for a test that will replace all or parts of it.
inline Mapping replaceable(Kind kind, std::size_t bytes) { return Mapping(kind, bytes, far_away(bytes)); }

} // namespace regcache::test
