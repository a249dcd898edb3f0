// SPDX-License-Identifier: BSD-2-Clause
// The fabric object: the lower provider's, behind ours. Its queues and passive endpoints are the lower provider's own.
#pragma once

#include "fid/settings.hpp"
#include "ofi/handle.hpp"
#include "ofi/names.hpp"
#include "sys/atomic.hpp"

#include <rdma/fabric.h>

#include <string>

namespace regcache {

// Any thread. Owns the lower fabric; its domains count themselves in and out.
class Fabric final : public fid_fabric {
public:
    using C = fid_fabric;

    // Opens the lower fabric that attr->name means. Throws Error.
    Fabric(const fi_fabric_attr &attr, const Settings &settings, void *context);

    // Our object if `fabric` is one, else nullptr.
    static Fabric *of(fid_fabric *fabric) noexcept;

    fid_fabric *lower() const noexcept { return lower_.get(); }
    const LowerName &lower_name() const noexcept { return lower_name_; }
    const Settings &settings() const noexcept { return settings_; }
    void count_domain(int change) noexcept { domains_.add_ordered(change); }

    // fi_ops
    int close();
    int bind(struct fid *object, std::uint64_t flags) noexcept;
    int control(int command, void *argument) noexcept;
    // fi_ops_fabric
    int open_domain(fi_info *info, fid_domain **domain, void *context);
    int open_domain2(fi_info *info, fid_domain **domain, std::uint64_t flags, void *context);
    int open_passive_ep(fi_info *info, fid_pep **endpoint, void *context);
    int open_eq(fi_eq_attr *attr, fid_eq **eq, void *context) noexcept;
    int open_wait(fi_wait_attr *attr, fid_wait **wait) noexcept;
    int trywait(struct fid **objects, int count) noexcept;

private:
    const LowerName lower_name_;
    const Settings settings_;
    LowerFabric lower_;
    Atomic<int> domains_{0};
};

// What the lower provider is to be shown of an fi_info that we handed up: its own names, and its own objects for ours.
// Throws bad_alloc.
InfoPtr info_for_lower(const fi_info &info);

} // namespace regcache
