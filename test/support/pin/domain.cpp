// SPDX-License-Identifier: BSD-2-Clause
// The domain but for its registrations (domain.hpp; mr.cpp).
#include "domain.hpp"

#include "endpoint.hpp"
#include "fabric.hpp"
#include "ops.hpp"
#include "provider.hpp"

#include <atomic>
#include <cstring>

namespace pin {

namespace {

std::atomic<unsigned> domains_opened{0};

constinit fi_ops fid_ops = {
    .size = sizeof(fi_ops),
    .close = &close_op<Domain>,
    .bind = op<&Domain::bind>,
    .control = op<&Domain::control>,
    .ops_open = op<&Domain::open_ops>,
    .tostr = enosys,
    .ops_set = enosys,
};

constinit fi_ops_domain domain_ops = {
    .size = sizeof(fi_ops_domain),
    .av_open = op<&Domain::open_av>,
    .cq_open = op<&Domain::open_cq>,
    .endpoint = op<&Domain::open_endpoint>,
    .scalable_ep = op<&Domain::open_scalable>,
    .cntr_open = op<&Domain::open_counter>,
    .poll_open = op<&Domain::open_poll>,
    .stx_ctx = op<&Domain::open_shared_tx>,
    .srx_ctx = op<&Domain::open_shared_rx>,
    .query_atomic = op<&Domain::query_atomic>,
    .query_collective = op<&Domain::query_collective>,
    .endpoint2 = op<&Domain::open_endpoint2>,
};

constinit fi_ops_mr mr_ops = {
    .size = sizeof(fi_ops_mr),
    .reg = op<&Domain::reg>,
    .regv = op<&Domain::regv>,
    .regattr = op<&Domain::regattr>,
};

// The two old names stand for sets of bits.
int expanded(int mr_mode)
{
    if (mr_mode == FI_MR_BASIC)
        return FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    return mr_mode == FI_MR_SCALABLE ? 0 : mr_mode;
}

} // namespace

Domain::Domain(const fi_info *info, void *context)
    : fid_domain{}, mr_mode_(expanded(info->domain_attr->mr_mode)), number_(++domains_opened), generation_(fork_generation()),
      rings_(std::make_shared<Rings>())
{
    fid = {FI_CLASS_DOMAIN, context, &fid_ops};
    ops = &domain_ops;
    mr = &mr_ops;
}

int Domain::close()
{
    const int error = objects().remove(&fid);
    if (error)
        return error;
    if (mr_events_)
        objects().release(&mr_events_->fid);
    rings_.reset();
    return 0;
}

int Domain::bind(struct fid *other, std::uint64_t flags)
{
    if (!objects().is_mine(other, &Eq::is_class))
        return -FI_EINVAL;
    if ((flags & FI_REG_MR) == 0)
        return 0; // domains have no other events
    if (mr_events_)
        return -FI_EINVAL;
    objects().hold(other);
    mr_events_ = object_of<Eq>(other);
    return 0;
}

int Domain::control(int command, void *argument)
{
    switch (command) {
    case FI_MAP_RAW_MR: {
        auto *raw = static_cast<struct fi_mr_map_raw *>(argument);
        if (raw->key_size != sizeof(std::uint64_t))
            return -FI_EINVAL;
        std::memcpy(raw->key, raw->raw_key, sizeof(std::uint64_t));
        return 0;
    }
    case FI_UNMAP_KEY:
        return 0;
    default:
        return -FI_ENOSYS;
    }
}

int Domain::open_ops(const char *name, std::uint64_t, void **found, void *)
{
    if (std::strcmp(name, "pin_ops") != 0)
        return -FI_ENOSYS;
    *found = const_cast<pin_ops *>(&kPinOps);
    return 0;
}

int Domain::open_av(fi_av_attr *, fid_av **av, void *context) { return make<Av>(av, &fid, context); }

int Domain::open_cq(fi_cq_attr *attr, fid_cq **cq, void *context)
{
    if (attr && !is_own_wait_set(attr->wait_set))
        return -FI_EINVAL;
    return make<Cq>(cq, &fid, attr, context);
}

int Domain::open_counter(fi_cntr_attr *attr, fid_cntr **counter, void *context)
{
    if (attr && !is_own_wait_set(attr->wait_set))
        return -FI_EINVAL;
    return make<Counter>(counter, &fid, context);
}

int Domain::open_poll(fi_poll_attr *, fid_poll **poll) { return make<Poll>(poll, &fid); }

int Domain::open_endpoint(fi_info *info, fid_ep **ep, void *context)
{
    if (!are_objects_own(info))
        return -FI_EINVAL;
    return make<Endpoint>(ep, &fid, std::size_t{FI_CLASS_EP}, has_mode(FI_MR_LOCAL), context);
}

int Domain::open_endpoint2(fi_info *info, fid_ep **ep, std::uint64_t, void *context)
{
    return open_endpoint(info, ep, context);
}

int Domain::open_scalable(fi_info *info, fid_ep **ep, void *context)
{
    if (!are_objects_own(info))
        return -FI_EINVAL;
    return make<Endpoint>(ep, &fid, std::size_t{FI_CLASS_SEP}, has_mode(FI_MR_LOCAL), context);
}

int Domain::open_shared_tx(fi_tx_attr *, fid_stx **stx, void *context) { return make<SharedTx>(stx, &fid, context); }

int Domain::open_shared_rx(fi_rx_attr *, fid_ep **rx, void *context)
{
    return make<Endpoint>(rx, &fid, std::size_t{FI_CLASS_SRX_CTX}, has_mode(FI_MR_LOCAL), context);
}

int Domain::query_atomic(fi_datatype type, fi_op, fi_atomic_attr *attr, std::uint64_t)
{
    if (type != FI_UINT64 && type != FI_INT64)
        return -FI_EOPNOTSUPP;
    attr->count = 1;
    attr->size = sizeof(std::uint64_t);
    return 0;
}

int Domain::query_collective(fi_collective_op collective, fi_collective_attr *attr, std::uint64_t)
{
    if (collective != FI_BARRIER)
        return -FI_EOPNOTSUPP;
    attr->max_members = 1;
    attr->mode = 0;
    return 0;
}

} // namespace pin
