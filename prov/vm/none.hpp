// SPDX-License-Identifier: BSD-2-Clause
// The source that sees nothing, so that nothing is cached: always right, never fast.
#pragma once

#include "vm/source.hpp"

namespace regcache {

class None final : public Source {
public:
    const char *name() const noexcept override { return "none"; }
    Watch watch(WatchedRange &) noexcept override { return Watch::NoEvents; }
    void unwatch(WatchedRange &) noexcept override {}
    std::uint64_t position() noexcept override { return 0; }
};

} // namespace regcache
