// SPDX-License-Identifier: BSD-2-Clause
// Sends the cache's log lines to libfabric's log.
#pragma once

#include <rdma/providers/fi_prov.h>

namespace regcache {

// From now on; nullptr ends it. libfabric shows warnings when FI_LOG_LEVEL is warn or more, info lines from info on.
void log_through(const fi_provider *provider) noexcept;

} // namespace regcache
