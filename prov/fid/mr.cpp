// SPDX-License-Identifier: BSD-2-Clause
// What can be done with a handle.
#include "fid/mr.hpp"

#include "fid/domain.hpp"
#include "ofi/op.hpp"

#include <cstdio>
#include <cstdlib>

namespace regcache {
namespace {

constinit fi_ops mr_fid_ops = {
    .size = sizeof(fi_ops),
    .close = op<&Mr::close>,
    .bind = op<&Mr::bind>,
    .control = op<&Mr::control>,
    .ops_open = enosys,
    .tostr = enosys,
    .ops_set = enosys,
};

} // namespace

Mr::Mr(Domain &domain, Region *region, fid_mr *lower, void *context) noexcept
    : fid_mr{}, domain_(domain), region_(region), lower_(lower)
{
    fid.fclass = FI_CLASS_MR;
    fid.context = context;
    fid.ops = &mr_fid_ops;
    take_lower_names();
}

Mr::Mr(Domain &domain, Region &region, void *context) noexcept
    : Mr(domain, &region, static_cast<fid_mr *>(region.registration), context)
{
}

Mr::Mr(Domain &domain, fid_mr *owned, void *context) noexcept : Mr(domain, nullptr, owned, context) {}

void Mr::take_lower_names() noexcept
{
    mem_desc = lower_->mem_desc;
    key = lower_->key;
}

int Mr::close() noexcept
{
#ifdef REGCACHE_DEBUG
    if (fid.fclass != FI_CLASS_MR) {
        std::fprintf(stderr, "regcache: a memory region is closed twice\n");
        std::abort();
    }
#endif
    if (region_) {
        domain_.release(*region_);
    } else if (const int error = domain_.close_owned(lower_); error != 0) {
        return error;
    }
    domain_.count_handle(-1);
    fid.fclass = FI_CLASS_UNSPEC;
    delete this;
    return 0;
}

// What is bound to a region concerns one handle: a region that others use too can't be bound, and one that can is shared
// no more.
int Mr::bind(struct fid *object, std::uint64_t flags) noexcept
{
    return region_ ? domain_.bind_cached(*region_, object, flags) : fi_mr_bind(lower_, object, flags);
}

int Mr::control(int command, void *argument) noexcept
{
    if (region_ && command == FI_ENABLE)
        return 0; // it is, and was never anything else
    if (region_ && command == FI_REFRESH)
        return 0; // its pages were pinned when it was made and are what they were, or it is stale by now
    const int error = lower_->fid.ops->control(&lower_->fid, command, argument);
    take_lower_names(); // enabling may have given it a key
    return error;
}

} // namespace regcache
