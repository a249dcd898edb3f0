// SPDX-License-Identifier: BSD-2-Clause
// The handle that an application gets for a registration: a user of one of the cache's regions, or the owner of a
// registration of its own.
#pragma once

#include "cache/region.hpp"

#include <rdma/fi_domain.h>

#include <cstdint>

namespace regcache {

class Domain;

// Closed once, by any thread. The descriptor and the key are the lower registration's.
class Mr final : public fid_mr {
public:
    using C = fid_mr;

    Mr(Domain &domain, Region &region, void *context) noexcept;
    Mr(Domain &domain, fid_mr *owned, void *context) noexcept;

    fid_mr *lower() const noexcept { return lower_; }

    // fi_ops
    int close() noexcept;
    int bind(struct fid *object, std::uint64_t flags) noexcept;
    int control(int command, void *argument) noexcept;

private:
    Mr(Domain &domain, Region *region, fid_mr *lower, void *context) noexcept;
    void take_lower_names() noexcept;

    Domain &domain_;
    Region *const region_; // nullptr: lower_ is ours alone
    fid_mr *const lower_;
};

} // namespace regcache
