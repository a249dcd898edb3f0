// SPDX-License-Identifier: BSD-2-Clause
// Who closes an object of the lower provider, and who frees an fi_info.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include <memory>

namespace regcache {

struct CloseFid {
    template <class Fid>
    void operator()(Fid *object) const noexcept
    {
        fi_close(&object->fid);
    }
};

using LowerFabric = std::unique_ptr<fid_fabric, CloseFid>;
using LowerDomain = std::unique_ptr<fid_domain, CloseFid>;
using LowerMr = std::unique_ptr<fid_mr, CloseFid>;

struct FreeInfo {
    void operator()(fi_info *info) const noexcept { fi_freeinfo(info); }
};
using InfoPtr = std::unique_ptr<fi_info, FreeInfo>;

} // namespace regcache
