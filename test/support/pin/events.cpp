// SPDX-License-Identifier: BSD-2-Clause
// Event queues, address vectors and poll sets (queues.hpp).
#include "ops.hpp"
#include "provider.hpp"
#include "queues.hpp"

#include <algorithm>
#include <cstring>

#include <rdma/fi_collective.h>

namespace pin {

namespace {

constinit fi_ops eq_fid_ops = {
    .size = sizeof(fi_ops),
    .close = &close_op<Eq>,
    .bind = enosys,
    .control = enosys,
    .ops_open = enosys,
    .tostr = enosys,
    .ops_set = enosys,
};

constinit fi_ops_eq eq_ops = {
    .size = sizeof(fi_ops_eq),
    .read = op<&Eq::read>,
    .readerr = op<&Eq::readerr>,
    .write = op<&Eq::write>,
    .sread = op<&Eq::sread>,
    .strerror = enosys,
};

constinit fi_ops av_fid_ops = {
    .size = sizeof(fi_ops),
    .close = &close_op<Av>,
    .bind = op<&Av::bind>,
    .control = enosys,
    .ops_open = enosys,
    .tostr = enosys,
    .ops_set = enosys,
};

constinit fi_ops_av av_ops = {
    .size = sizeof(fi_ops_av),
    .insert = op<&Av::insert>,
    .insertsvc = enosys,
    .insertsym = enosys,
    .remove = op<&Av::remove>,
    .lookup = op<&Av::lookup>,
    .straddr = enosys,
    .av_set = enosys,
};

constinit fi_ops poll_fid_ops = {
    .size = sizeof(fi_ops),
    .close = &close_op<Poll>,
    .bind = enosys,
    .control = enosys,
    .ops_open = enosys,
    .tostr = enosys,
    .ops_set = enosys,
};

constinit fi_ops_poll poll_ops = {
    .size = sizeof(fi_ops_poll),
    .poll = op<&Poll::poll>,
    .poll_add = op<&Poll::add>,
    .poll_del = op<&Poll::remove>,
};

bool is_pollable(std::size_t fclass) { return fclass == FI_CLASS_CQ || fclass == FI_CLASS_CNTR; }

} // namespace

Eq::Eq(void *context) : fid_eq{}
{
    fid = {FI_CLASS_EQ, context, &eq_fid_ops};
    ops = &eq_ops;
}

void Eq::post(std::uint32_t event, const fi_eq_entry &entry) { write(event, &entry, sizeof(entry), 0); }

ssize_t Eq::take(std::uint32_t *event, void *buffer, std::size_t len, std::uint64_t flags)
{
    if (events_.empty())
        return -FI_EAGAIN;
    const Event &next = events_.front();
    if (len < next.bytes.size())
        return -FI_ETOOSMALL;
    *event = next.event;
    std::memcpy(buffer, next.bytes.data(), next.bytes.size());
    const auto copied = static_cast<ssize_t>(next.bytes.size());
    if ((flags & FI_PEEK) == 0)
        events_.pop_front();
    return copied;
}

ssize_t Eq::read(std::uint32_t *event, void *buffer, std::size_t len, std::uint64_t flags)
{
    const std::lock_guard lock(mutex_);
    return take(event, buffer, len, flags);
}

ssize_t Eq::readerr(fi_eq_err_entry *, std::uint64_t) { return -FI_EAGAIN; }

ssize_t Eq::write(std::uint32_t event, const void *buffer, std::size_t len, std::uint64_t)
{
    const std::lock_guard lock(mutex_);
    events_.push_back({event, std::string(static_cast<const char *>(buffer), len)});
    posted_.notify_all();
    return static_cast<ssize_t>(len);
}

ssize_t Eq::sread(std::uint32_t *event, void *buffer, std::size_t len, int timeout_ms, std::uint64_t flags)
{
    std::unique_lock lock(mutex_);
    posted_.wait_for(lock, bounded(timeout_ms), [&] { return !events_.empty(); });
    return take(event, buffer, len, flags);
}

Av::Av(void *context) : fid_av{}
{
    fid = {FI_CLASS_AV, context, &av_fid_ops};
    ops = &av_ops;
}

int Av::bind(struct fid *other, std::uint64_t) { return objects().is_mine(other, &Eq::is_class) ? 0 : -FI_EINVAL; }

int Av::insert(const void *, std::size_t count, fi_addr_t *found, std::uint64_t, void *)
{
    const std::lock_guard lock(mutex_);
    for (std::size_t at = 0; at < count; ++at) {
        if (found)
            found[at] = next_;
        ++next_;
    }
    return static_cast<int>(count);
}

int Av::remove(fi_addr_t *, std::size_t, std::uint64_t) { return 0; }

int Av::lookup(fi_addr_t, void *buffer, std::size_t *len)
{
    std::memcpy(buffer, kAddress, std::min(*len, sizeof(kAddress)));
    *len = sizeof(kAddress);
    return 0;
}

Poll::Poll() : fid_poll{}
{
    fid = {FI_CLASS_POLL, nullptr, &poll_fid_ops};
    ops = &poll_ops;
}

int Poll::close()
{
    std::vector<struct fid *> members;
    {
        const std::lock_guard lock(mutex_);
        members = members_;
    }
    const int error = objects().remove(&fid);
    if (error)
        return error;
    for (struct fid *member : members)
        objects().release(member);
    return 0;
}

int Poll::poll(void **, int) { return 0; }

int Poll::add(struct fid *event_fid, std::uint64_t)
{
    if (!objects().is_mine(event_fid, &is_pollable))
        return -FI_EINVAL;
    const std::lock_guard lock(mutex_);
    members_.push_back(event_fid);
    objects().hold(event_fid);
    return 0;
}

int Poll::remove(struct fid *event_fid, std::uint64_t)
{
    if (!objects().is_mine(event_fid, &is_pollable))
        return -FI_EINVAL;
    const std::lock_guard lock(mutex_);
    const auto at = std::find(members_.begin(), members_.end(), event_fid);
    if (at == members_.end())
        return -FI_EINVAL;
    members_.erase(at);
    objects().release(event_fid);
    return 0;
}

} // namespace pin
