// SPDX-License-Identifier: BSD-2-Clause
// Passive endpoints and shared transmit contexts (endpoint.hpp): no connection ever comes in.
#include "endpoint.hpp"

#include "ops.hpp"

namespace pin {

namespace {

constinit fi_ops passive_fid_ops = {
    .size = sizeof(fi_ops),
    .close = &close_op<PassiveEndpoint>,
    .bind = op<&PassiveEndpoint::bind>,
    .control = enosys,
    .ops_open = enosys,
    .tostr = enosys,
    .ops_set = enosys,
};

constinit fi_ops_ep passive_ops = {
    .size = sizeof(fi_ops_ep),
    .cancel = enosys,
    .getopt = enosys,
    .setopt = enosys,
    .tx_ctx = enosys,
    .rx_ctx = enosys,
    .rx_size_left = enosys,
    .tx_size_left = enosys,
};

constinit fi_ops_cm passive_cm_ops = {
    .size = sizeof(fi_ops_cm),
    .setname = enosys,
    .getname = op<&PassiveEndpoint::getname>,
    .getpeer = enosys,
    .connect = enosys,
    .listen = op<&PassiveEndpoint::listen>,
    .accept = enosys,
    .reject = op<&PassiveEndpoint::reject>,
    .shutdown = enosys,
    .join = enosys,
};

constinit fi_ops shared_tx_fid_ops = {
    .size = sizeof(fi_ops),
    .close = &close_op<SharedTx>,
    .bind = enosys,
    .control = enosys,
    .ops_open = enosys,
    .tostr = enosys,
    .ops_set = enosys,
};

bool is_any(std::size_t) { return true; }

} // namespace

PassiveEndpoint::PassiveEndpoint(void *context) : fid_pep{}
{
    fid = {FI_CLASS_PEP, context, &passive_fid_ops};
    ops = &passive_ops;
    cm = &passive_cm_ops;
}

int PassiveEndpoint::close()
{
    const std::vector<struct fid *> bound = bound_;
    const int error = objects().remove(&fid);
    if (error)
        return error;
    for (struct fid *other : bound)
        objects().release(other);
    return 0;
}

int PassiveEndpoint::bind(struct fid *other, std::uint64_t)
{
    if (!objects().is_mine(other, &Eq::is_class))
        return -FI_EINVAL;
    bound_.push_back(other);
    objects().hold(other);
    return 0;
}

int PassiveEndpoint::getname(void *address, std::size_t *len) { return give_name(address, len); }
int PassiveEndpoint::listen() { return 0; }

int PassiveEndpoint::reject(struct fid *handle, const void *, std::size_t)
{
    return objects().is_mine(handle, &is_any) ? 0 : -FI_EINVAL;
}

SharedTx::SharedTx(void *context) : fid_stx{}
{
    fid = {FI_CLASS_STX_CTX, context, &shared_tx_fid_ops};
    ops = nullptr;
}

} // namespace pin
