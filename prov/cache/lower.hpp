// SPDX-License-Identifier: BSD-2-Clause
// What the cache knows of the provider below: two calls.
#pragma once

#include "sys/range.hpp"

#include <cstdint>

namespace regcache {

// What a registration may be used for: bits that the cache compares and never interprets.
using Rights = std::uint64_t;

constexpr bool covers(Rights have, Rights want) noexcept { return (have & want) == want; }

class Lower {
public:
    // Registers `range` with exactly `rights`. 0 and a registration, or a negative error code. Called from any thread,
    // by several at once, with no lock held: it may allocate, free, unmap and block.
    virtual int register_range(Range range, Rights rights, void **registration) noexcept = 0;
    // Gives a registration back: 0, or a negative error code; then it is left alone for good.
    virtual int deregister(void *registration) noexcept = 0;

protected:
    ~Lower() = default;
};

} // namespace regcache
