// SPDX-License-Identifier: BSD-2-Clause
// How much the cache may hold where the user doesn't say: from the device, the machine and the process's limits.
#pragma once

#include "cache/cache.hpp"

#include <cstddef>
#include <string>

namespace regcache {

// Whether the provider pins what is registered with it: those that don't need no limit, and have no cache of their own.
bool pins(const std::string &lower_provider) noexcept;

// `device_count` is the lower provider's number of registrations, 0 if it doesn't tell. The bytes are half of the
// machine's memory for each rank on the node, and no more than three quarters of what this process may lock, if that is
// limited and the lower provider pins.
CacheLimits default_limits(const std::string &lower_provider, std::size_t device_count) noexcept;

} // namespace regcache
