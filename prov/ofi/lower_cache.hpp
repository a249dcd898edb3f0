// SPDX-License-Identifier: BSD-2-Clause
// How lower providers are kept from caching registrations themselves: their cache would hold on to what ours gives back,
// and hand out pages that ours knows to be gone.
#pragma once

namespace regcache {

enum class LowerCache {
    Off,     // no lower provider of this process caches from now on, or ever did
    Unknown, // another library has put its memory monitor into libfabric, or a cache is in use already
};

// libfabric lets one memory monitor be imported (<rdma/fi_ext.h>), which its caches then need: ours never starts, so that
// they stay off, and libfabric's own monitors don't patch the C library. To be called before a lower domain is opened;
// affects domains that the program opens beside ours, too. Any thread, any number of times.
LowerCache keep_lower_caches_off() noexcept;

// Takes the monitor back before the library is unloaded. No lower domain may be open.
void take_back_monitor() noexcept;

} // namespace regcache
