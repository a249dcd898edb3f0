// SPDX-License-Identifier: BSD-2-Clause
// Forwards what is asked of a fabric, with the lower objects in the place of ours.
#include "fid/fabric.hpp"

#include "fid/domain.hpp"
#include "ofi/op.hpp"

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include <cerrno>
#include <memory>

namespace regcache {
namespace {

constinit fi_ops fabric_fid_ops = {
    .size = sizeof(fi_ops),
    .close = op<&Fabric::close>,
    .bind = op<&Fabric::bind>,
    .control = op<&Fabric::control>,
    .ops_open = enosys, // tables of the lower provider would take our objects for its own
    .tostr = enosys,
    .ops_set = enosys,
};

constinit fi_ops_fabric fabric_ops = {
    .size = sizeof(fi_ops_fabric),
    .domain = op<&Fabric::open_domain>,
    .passive_ep = op<&Fabric::open_passive_ep>,
    .eq_open = op<&Fabric::open_eq>,
    .wait_open = op<&Fabric::open_wait>,
    .trywait = op<&Fabric::trywait>,
    .domain2 = op<&Fabric::open_domain2>,
};

LowerFabric open_lower(const LowerName &name, std::uint32_t api_version)
{
    if (name.provider.empty())
        throw Error(FI_EINVAL, "the fabric's name isn't one of regcache's (lower provider, colon, fabric)");
    std::string provider = name.provider, fabric = name.fabric;
    fi_fabric_attr attr{};
    attr.prov_name = provider.data();
    attr.name = fabric.data();
    attr.api_version = api_version;
    fid_fabric *lower = nullptr;
    if (const int error = fi_fabric(&attr, &lower, nullptr); error != 0)
        throw Error(-error, "the lower provider " + name.provider + " can't open the fabric " + name.fabric);
    return LowerFabric(lower);
}

} // namespace

Fabric::Fabric(const fi_fabric_attr &attr, const Settings &settings, void *context)
    : fid_fabric{}, lower_name_(regcache::lower_name(attr.name)), settings_(settings),
      lower_(open_lower(lower_name_, attr.api_version))
{
    fid.fclass = FI_CLASS_FABRIC;
    fid.context = context;
    fid.ops = &fabric_fid_ops;
    ops = &fabric_ops;
    api_version = attr.api_version;
}

Fabric *Fabric::of(fid_fabric *fabric) noexcept
{
    return fabric && fabric->fid.ops == &fabric_fid_ops ? static_cast<Fabric *>(fabric) : nullptr;
}

int Fabric::close()
{
    if (domains_.load_ordered() != 0)
        return -FI_EBUSY;
    if (const int error = fi_close(&lower_->fid); error != 0)
        return error;
    lower_.release();
    delete this;
    return 0;
}

int Fabric::bind(struct fid *object, std::uint64_t flags) noexcept
{
    return lower_->fid.ops->bind(&lower_->fid, object, flags);
}

int Fabric::control(int command, void *argument) noexcept
{
    return lower_->fid.ops->control(&lower_->fid, command, argument);
}

int Fabric::open_domain(fi_info *info, fid_domain **domain, void *context)
{
    return open_domain2(info, domain, 0, context);
}

int Fabric::open_domain2(fi_info *info, fid_domain **domain, std::uint64_t flags, void *context)
{
    if (!info || !info->domain_attr || !domain)
        return -FI_EINVAL;
    auto opened = std::make_unique<Domain>(*this, *info, flags, context);
    *domain = opened.release();
    return 0;
}

int Fabric::open_passive_ep(fi_info *info, fid_pep **endpoint, void *context)
{
    if (!info)
        return -FI_EINVAL;
    return fi_passive_ep(lower_.get(), info_for_lower(*info).get(), endpoint, context);
}

int Fabric::open_eq(fi_eq_attr *attr, fid_eq **eq, void *context) noexcept
{
    return fi_eq_open(lower_.get(), attr, eq, context);
}

int Fabric::open_wait(fi_wait_attr *attr, fid_wait **wait) noexcept
{
    return fi_wait_open(lower_.get(), attr, wait);
}

int Fabric::trywait(struct fid **objects, int count) noexcept
{
    return fi_trywait(lower_.get(), objects, count);
}

// A copy that an older ABI makes has the newer fields of a newer libfabric at zero: unspecified.
InfoPtr info_for_lower(const fi_info &info)
{
    InfoPtr lower(fi_dupinfo(&info));
    if (!lower)
        throw std::bad_alloc();
    if (lower->fabric_attr) {
        const LowerName name = lower_name(info.fabric_attr->name);
        if (!name.provider.empty()) {
            replace(lower->fabric_attr->name, name.fabric);
            replace(lower->fabric_attr->prov_name, name.provider);
        }
        const Fabric *const ours = Fabric::of(info.fabric_attr->fabric);
        lower->fabric_attr->fabric = ours ? ours->lower() : info.fabric_attr->fabric;
    }
    if (lower->domain_attr) {
        const Domain *const ours = Domain::of(info.domain_attr->domain);
        lower->domain_attr->domain = ours ? ours->lower() : info.domain_attr->domain;
        if (ours)
            lower->domain_attr->mr_mode = ours->lower_mr_mode(info.domain_attr->mr_mode);
    }
    lower->handle = info.handle;
    return lower;
}

} // namespace regcache
