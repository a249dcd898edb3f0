// SPDX-License-Identifier: BSD-2-Clause
// The fabric and wait sets (fabric.hpp).
#include "fabric.hpp"

#include "domain.hpp"
#include "endpoint.hpp"
#include "ops.hpp"
#include "provider.hpp"

namespace pin {

namespace {

constinit fi_ops fabric_fid_ops = {
    .size = sizeof(fi_ops),
    .close = &close_op<Fabric>,
    .bind = enosys,
    .control = enosys,
    .ops_open = enosys,
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

constinit fi_ops wait_fid_ops = {
    .size = sizeof(fi_ops),
    .close = &close_op<Wait>,
    .bind = enosys,
    .control = enosys,
    .ops_open = enosys,
    .tostr = enosys,
    .ops_set = enosys,
};

constinit fi_ops_wait wait_ops = {.size = sizeof(fi_ops_wait), .wait = enosys};

bool is_queue(std::size_t fclass)
{
    return fclass == FI_CLASS_CQ || fclass == FI_CLASS_EQ || fclass == FI_CLASS_CNTR || fclass == FI_CLASS_WAIT;
}

} // namespace

bool are_objects_own(const fi_info *info)
{
    if (!info)
        return false;
    bool are_own = true;
    if (info->fabric_attr && info->fabric_attr->fabric)
        are_own = objects().is_mine(&info->fabric_attr->fabric->fid, &Fabric::is_class) && are_own;
    if (info->domain_attr && info->domain_attr->domain)
        are_own = objects().is_mine(&info->domain_attr->domain->fid, &Domain::is_class) && are_own;
    return are_own;
}

bool is_own_wait_set(fid_wait *wait) { return !wait || objects().is_mine(&wait->fid, &Wait::is_class); }

int open_fabric(fi_fabric_attr *attr, fid_fabric **fabric, void *context)
{
    return guarded<int>([&] { return make<Fabric>(fabric, nullptr, attr->api_version, context); });
}

Fabric::Fabric(std::uint32_t version, void *context) : fid_fabric{}
{
    fid = {FI_CLASS_FABRIC, context, &fabric_fid_ops};
    ops = &fabric_ops;
    api_version = version;
}

int Fabric::open_domain(fi_info *info, fid_domain **domain, void *context)
{
    if (!are_objects_own(info) || !info->domain_attr)
        return -FI_EINVAL;
    return make<Domain>(domain, &fid, info, context);
}

int Fabric::open_domain2(fi_info *info, fid_domain **domain, std::uint64_t flags, void *context)
{
    return flags ? -FI_EOPNOTSUPP : open_domain(info, domain, context);
}

int Fabric::open_passive_ep(fi_info *info, fid_pep **pep, void *context)
{
    if (!are_objects_own(info))
        return -FI_EINVAL;
    return make<PassiveEndpoint>(pep, &fid, context);
}

int Fabric::open_eq(fi_eq_attr *attr, fid_eq **eq, void *context)
{
    if (attr && !is_own_wait_set(attr->wait_set))
        return -FI_EINVAL;
    return make<Eq>(eq, &fid, context);
}

int Fabric::open_wait(fi_wait_attr *, fid_wait **wait) { return make<Wait>(wait, &fid); }

int Fabric::trywait(struct fid **fids, int count)
{
    bool are_own = true;
    for (int at = 0; at < count; ++at)
        are_own = objects().is_mine(fids[at], &is_queue) && are_own;
    return are_own ? 0 : -FI_EINVAL;
}

Wait::Wait() : fid_wait{}
{
    fid = {FI_CLASS_WAIT, nullptr, &wait_fid_ops};
    ops = &wait_ops;
}

} // namespace pin
