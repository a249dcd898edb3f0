// SPDX-License-Identifier: BSD-2-Clause
// What the provider offers: every lower provider's answers, with names of ours.
#pragma once

#include <rdma/providers/fi_prov.h>

#include <cstdint>

namespace regcache {

// fi_getinfo's contract for one provider. -FI_ENODATA when nobody asked for regcache, when it is asked by its own question
// to libfabric, or when no lower provider fulfils the hints. Any thread; `hints` isn't changed.
int discover(fi_provider &provider, std::uint32_t version, const char *node, const char *service, std::uint64_t flags,
             const fi_info *hints, fi_info **infos) noexcept;

} // namespace regcache
