// SPDX-License-Identifier: BSD-2-Clause
// Endpoints (endpoint.hpp).
#include "endpoint.hpp"

#include "idle_ops.hpp"
#include "ops.hpp"
#include "provider.hpp"

#include <algorithm>
#include <cstring>

namespace pin {

namespace {

constinit fi_ops endpoint_fid_ops = {
    .size = sizeof(fi_ops),
    .close = &close_op<Endpoint>,
    .bind = op<&Endpoint::bind>,
    .control = op<&Endpoint::control>,
    .ops_open = enosys,
    .tostr = enosys,
    .ops_set = enosys,
};

constinit fi_ops_ep endpoint_ops = {
    .size = sizeof(fi_ops_ep),
    .cancel = enosys,
    .getopt = op<&Endpoint::getopt>,
    .setopt = op<&Endpoint::setopt>,
    .tx_ctx = op<&Endpoint::open_tx>,
    .rx_ctx = op<&Endpoint::open_rx>,
    .rx_size_left = enosys,
    .tx_size_left = enosys,
};

constinit fi_ops_cm endpoint_cm_ops = {
    .size = sizeof(fi_ops_cm),
    .setname = enosys,
    .getname = op<&Endpoint::getname>,
    .getpeer = enosys,
    .connect = enosys,
    .listen = enosys,
    .accept = enosys,
    .reject = enosys,
    .shutdown = enosys,
    .join = enosys,
};

constinit fi_ops_rma rma_ops = {
    .size = sizeof(fi_ops_rma),
    .read = op<&Endpoint::read>,
    .readv = op<&Endpoint::readv>,
    .readmsg = op<&Endpoint::readmsg>,
    .write = op<&Endpoint::write>,
    .writev = op<&Endpoint::writev>,
    .writemsg = op<&Endpoint::writemsg>,
    .inject = op<&Endpoint::inject_write>,
    .writedata = enosys,
    .injectdata = enosys,
};

bool may_bind(std::size_t fclass)
{
    return fclass == FI_CLASS_CQ || fclass == FI_CLASS_CNTR || fclass == FI_CLASS_EQ || fclass == FI_CLASS_AV ||
           fclass == FI_CLASS_SRX_CTX || fclass == FI_CLASS_STX_CTX;
}

} // namespace

int give_name(void *address, std::size_t *len)
{
    const std::size_t room = *len;
    *len = sizeof(kAddress);
    std::memcpy(address, kAddress, std::min(room, sizeof(kAddress)));
    return room < sizeof(kAddress) ? -FI_ETOOSMALL : 0;
}

Endpoint::Endpoint(std::size_t fclass, bool needs_desc, void *context) : fid_ep{}, needs_desc_(needs_desc)
{
    fid = {fclass, context, &endpoint_fid_ops};
    ops = &endpoint_ops;
    cm = &endpoint_cm_ops;
    msg = &idle_msg_ops;
    rma = &rma_ops;
    tagged = &idle_tagged_ops;
    atomic = &idle_atomic_ops;
    collective = &idle_collective_ops;
}

int Endpoint::close()
{
    const std::vector<struct fid *> bound = bound_;
    const int error = objects().remove(&fid);
    if (error)
        return error;
    for (struct fid *other : bound)
        objects().release(other);
    return 0;
}

int Endpoint::bind(struct fid *other, std::uint64_t flags)
{
    if (!objects().is_mine(other, &may_bind))
        return -FI_EINVAL;
    if (other->fclass == FI_CLASS_CQ && (flags & FI_TRANSMIT) != 0)
        completions_ = object_of<Cq>(other);
    if (other->fclass == FI_CLASS_CNTR && (flags & FI_READ) != 0)
        reads_ = object_of<Counter>(other);
    if (other->fclass == FI_CLASS_CNTR && (flags & FI_WRITE) != 0)
        writes_ = object_of<Counter>(other);
    bound_.push_back(other);
    objects().hold(other);
    return 0;
}

int Endpoint::control(int command, void *) { return command == FI_ENABLE ? 0 : -FI_ENOSYS; }

int Endpoint::open_tx(int, fi_tx_attr *, fid_ep **tx, void *context)
{
    return make<Endpoint>(tx, &fid, std::size_t{FI_CLASS_TX_CTX}, needs_desc_, context);
}

int Endpoint::open_rx(int, fi_rx_attr *, fid_ep **rx, void *context)
{
    return make<Endpoint>(rx, &fid, std::size_t{FI_CLASS_RX_CTX}, needs_desc_, context);
}

int Endpoint::getname(void *address, std::size_t *len) { return give_name(address, len); }
int Endpoint::setopt(int, int, const void *, std::size_t) { return 0; }
int Endpoint::getopt(int, int, void *, std::size_t *) { return -FI_ENOPROTOOPT; }

ssize_t Endpoint::transfer(Direction direction, void *buffer, std::size_t len, void *desc, std::uint64_t address,
                           std::uint64_t key, Desc need)
{
    std::shared_ptr<Registration> local;
    if (desc && need != Desc::Unused) {
        local = regions().find(desc);
        if (!local) {
            ++objects().misuse().foreign_descs;
            return -FI_EINVAL;
        }
    } else if (need == Desc::Needed) {
        return -FI_EINVAL;
    }
    std::shared_ptr<Registration> remote;
    if (const int error = regions().find_key(key, remote))
        return error;
    std::vector<char> bytes(len);
    // Out of our buffer (fi_write) into the peer's, or the other way around; the buffer's bytes are those of its registration.
    const auto copy_local = [&](Direction way) -> ssize_t {
        if (local)
            return local->copy(way, Rights::Local, buffer, bytes.data(), len);
        std::memcpy(way == Direction::Out ? bytes.data() : buffer, way == Direction::Out ? buffer : bytes.data(), len);
        return static_cast<ssize_t>(len);
    };
    const auto copy_remote = [&](Direction way) {
        return remote->copy(way, Rights::Remote, remote->local_address(address), bytes.data(), len);
    };
    ssize_t copied = direction == Direction::Out ? copy_local(Direction::Out) : copy_remote(Direction::Out);
    if (copied >= 0)
        copied = direction == Direction::Out ? copy_remote(Direction::In) : copy_local(Direction::In);
    if (copied < 0)
        return copied;
    regions().count_copy(direction == Direction::Out ? Direction::In : Direction::Out);
    return 0;
}

void Endpoint::complete(Direction direction, void *context, std::size_t len)
{
    const std::uint64_t flags = FI_RMA | (direction == Direction::Out ? FI_WRITE : FI_READ);
    if (completions_)
        completions_->post({context, flags, len, nullptr, 0, 0});
    Counter *counter = direction == Direction::Out ? writes_ : reads_;
    if (counter)
        counter->add(1);
}

ssize_t Endpoint::transfer_message(Direction direction, const fi_msg_rma *message)
{
    if (message->rma_iov_count != 1)
        return -FI_EINVAL;
    std::size_t done = 0;
    for (std::size_t at = 0; at < message->iov_count; ++at) {
        const iovec &part = message->msg_iov[at];
        void *desc = message->desc ? message->desc[at] : nullptr;
        const ssize_t error = transfer(direction, part.iov_base, part.iov_len, desc, message->rma_iov->addr + done,
                                       message->rma_iov->key, needs_desc_ ? Desc::Needed : Desc::Optional);
        if (error)
            return error;
        done += part.iov_len;
    }
    complete(direction, message->context, done);
    return 0;
}

ssize_t Endpoint::readv(const iovec *iov, void **desc, std::size_t count, fi_addr_t, std::uint64_t address, std::uint64_t key,
                        void *context)
{
    const fi_rma_iov remote{address, 0, key};
    const fi_msg_rma message{iov, desc, count, FI_ADDR_UNSPEC, &remote, 1, context, 0};
    return transfer_message(Direction::In, &message);
}

ssize_t Endpoint::writev(const iovec *iov, void **desc, std::size_t count, fi_addr_t, std::uint64_t address,
                         std::uint64_t key, void *context)
{
    const fi_rma_iov remote{address, 0, key};
    const fi_msg_rma message{iov, desc, count, FI_ADDR_UNSPEC, &remote, 1, context, 0};
    return transfer_message(Direction::Out, &message);
}

ssize_t Endpoint::read(void *buffer, std::size_t len, void *desc, fi_addr_t peer, std::uint64_t address, std::uint64_t key,
                       void *context)
{
    const iovec iov{buffer, len};
    return readv(&iov, &desc, 1, peer, address, key, context);
}

ssize_t Endpoint::write(const void *buffer, std::size_t len, void *desc, fi_addr_t peer, std::uint64_t address,
                        std::uint64_t key, void *context)
{
    const iovec iov{const_cast<void *>(buffer), len};
    return writev(&iov, &desc, 1, peer, address, key, context);
}

ssize_t Endpoint::readmsg(const fi_msg_rma *message, std::uint64_t) { return transfer_message(Direction::In, message); }
ssize_t Endpoint::writemsg(const fi_msg_rma *message, std::uint64_t) { return transfer_message(Direction::Out, message); }

ssize_t Endpoint::inject_write(const void *buffer, std::size_t len, fi_addr_t, std::uint64_t address, std::uint64_t key)
{
    return transfer(Direction::Out, const_cast<void *>(buffer), len, nullptr, address, key, Desc::Unused);
}

} // namespace pin
