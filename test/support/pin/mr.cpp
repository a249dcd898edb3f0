// SPDX-License-Identifier: BSD-2-Clause
// Memory regions (domain.hpp): made in the order that a card does it, with the ordered misbehaviour on the way.
#include "domain.hpp"
#include "endpoint.hpp"
#include "ops.hpp"
#include "script.hpp"

#include <cstring>

namespace pin {

namespace {

constexpr std::size_t kMaxIov = 4;
constexpr std::uint64_t kDmabuf = 1ULL << 40; // FI_MR_DMABUF of later libfabrics: the iov is no memory then

bool may_bind(std::size_t fclass)
{
    return Endpoint::is_class(fclass) || fclass == FI_CLASS_CNTR || fclass == FI_CLASS_EQ;
}

constinit fi_ops mr_fid_ops = {
    .size = sizeof(fi_ops),
    .close = &close_op<Mr>,
    .bind = op<&Mr::bind>,
    .control = op<&Mr::control>,
    .ops_open = enosys,
    .tostr = enosys,
    .ops_set = enosys,
};

std::size_t total_len(const fi_mr_attr &attr)
{
    std::size_t len = 0;
    for (std::size_t at = 0; at < attr.iov_count; ++at)
        len += attr.mr_iov[at].iov_len;
    return len;
}

bool is_well_formed(const fi_mr_attr &attr)
{
    if (!attr.mr_iov || attr.iov_count == 0 || attr.iov_count > kMaxIov)
        return false;
    for (std::size_t at = 0; at < attr.iov_count; ++at)
        if (attr.mr_iov[at].iov_len == 0 || !attr.mr_iov[at].iov_base)
            return false;
    return true;
}

} // namespace

Mr::Mr(const Domain &of, void *context_)
    : fid_mr{}, generation(fork_generation()), needs_enabling_(of.has_mode(FI_MR_ENDPOINT))
{
    fid = {FI_CLASS_MR, context_, &mr_fid_ops};
    key = FI_KEY_NOTAVAIL;
}

int Domain::reg(const void *start, std::size_t len, std::uint64_t access, std::uint64_t offset, std::uint64_t requested_key,
                std::uint64_t flags, fid_mr **out, void *context)
{
    const iovec iov{const_cast<void *>(start), len};
    return regv(&iov, 1, access, offset, requested_key, flags, out, context);
}

int Domain::regv(const iovec *iov, std::size_t count, std::uint64_t access, std::uint64_t offset, std::uint64_t requested_key,
                 std::uint64_t flags, fid_mr **out, void *context)
{
    fi_mr_attr attr{};
    attr.mr_iov = iov;
    attr.iov_count = count;
    attr.access = access;
    attr.offset = offset;
    attr.requested_key = requested_key;
    attr.context = context;
    return regattr(&attr, flags, out);
}

int Domain::regattr(const fi_mr_attr *attr, std::uint64_t flags, fid_mr **out)
{
    regions().count_asked();
    const int error = guarded<int>([&] { return make_region(*attr, flags, out); });
    if (error)
        regions().count_refused();
    return error;
}

std::shared_ptr<Registration> Domain::describe(const fi_mr_attr &attr, std::uint64_t flags) const
{
    auto registration = std::make_shared<Registration>(rings_, has_mode(FI_MR_VIRT_ADDR));
    pin_region &asked = registration->asked;
    asked.key = FI_KEY_NOTAVAIL;
    asked.start = attr.mr_iov[0].iov_base;
    asked.len = total_len(attr);
    asked.iov_count = attr.iov_count;
    asked.access = attr.access;
    asked.given_access = attr.access & script().allowed_access();
    asked.offset = attr.offset;
    asked.requested_key = attr.requested_key;
    asked.flags = flags;
    asked.context = attr.context;
    asked.iface = attr.iface;
    asked.auth_key_size = attr.auth_key_size;
    asked.domain = number_;
    return registration;
}

int Domain::make_region(const fi_mr_attr &attr, std::uint64_t flags, fid_mr **out)
{
    if (generation_ != fork_generation()) {
        ++objects().misuse().calls_in_child;
        return -FI_EOPNOTSUPP;
    }
    if ((flags & kDmabuf) != 0 || (attr.iface != FI_HMEM_SYSTEM && !has_mode(FI_MR_HMEM)))
        return -FI_EOPNOTSUPP;
    if (!is_well_formed(attr))
        return -FI_EINVAL;
    const void *start = attr.mr_iov[0].iov_base;
    const std::size_t len = total_len(attr);
    if (const int error = script().call_hook(PIN_BEFORE_REGISTER, start, len))
        return error;
    if (const int error = script().next_register())
        return error;

    auto region = std::make_unique<Mr>(*this, attr.context);
    const auto registration = describe(attr, flags);
    if (const int error = region->claim.take(number_, len, attr.requested_key, has_mode(FI_MR_PROV_KEY)))
        return error;
    const bool is_written = writes_memory(attr.access) || script().is_write_demanded();
    if (const int error = registration->pin(attr.mr_iov, attr.iov_count, is_written))
        return error;
    // Not ours to fail any more, whatever the hook answers.
    script().call_hook(PIN_AFTER_REGISTER, start, len);

    region->mem_desc = regions().insert(registration);
    try {
        objects().add(&region->fid, &fid, [](struct fid *f) { delete object_of<Mr>(f); });
    } catch (...) {
        regions().erase(region->mem_desc);
        throw;
    }
    if (!region->needs_enabling_)
        region->publish();
    *out = region.release();
    if (mr_events_)
        mr_events_->post(FI_MR_COMPLETE, {&(*out)->fid, attr.context, 0});
    return 0;
}

int Mr::close()
{
    const bool is_in_child = generation != fork_generation();
    if (is_in_child)
        ++objects().misuse().calls_in_child;
    auto mine = regions().find(mem_desc);
    const void *start = mine ? mine->asked.start : nullptr;
    const std::size_t len = mine ? mine->asked.len : 0;
    if (!is_in_child) {
        if (const int error = script().call_hook(PIN_BEFORE_DEREGISTER, start, len))
            return error;
        if (const int error = script().next_deregister())
            return error;
    }
    // Taken out before remove(): a removed object may be freed at any moment.
    void *desc = mem_desc;
    std::vector<struct fid *> bound;
    Claim held;
    {
        const std::lock_guard lock(mutex_);
        bound.swap(bound_);
        held = std::move(claim);
    }
    // Of two closes at once one gets through here; the other is a double close.
    if (const int error = objects().remove(&fid))
        return error;
    for (struct fid *other : bound)
        objects().release(other);
    regions().erase(desc);
    mine.reset(); // unpins, unless a reader on another thread is the last
    held.give_back();
    if (!is_in_child)
        script().call_hook(PIN_AFTER_DEREGISTER, start, len);
    return 0;
}

int Mr::bind(struct fid *other, std::uint64_t)
{
    if (!objects().is_mine(other, &may_bind))
        return -FI_EINVAL;
    const std::lock_guard lock(mutex_);
    bound_.push_back(other);
    objects().hold(other);
    return 0;
}

int Mr::enable()
{
    {
        const std::lock_guard lock(mutex_);
        if (!needs_enabling_ || bound_.empty())
            return -FI_EINVAL;
        needs_enabling_ = false;
    }
    publish();
    return 0;
}

void Mr::publish()
{
    key = claim.key();
    regions().publish_key(mem_desc, key);
}

int Mr::control(int command, void *argument)
{
    switch (command) {
    case FI_ENABLE:
        return enable();
    case FI_REFRESH:
        regions().count_refreshed();
        return 0;
    case FI_GET_RAW_MR: {
        auto *raw = static_cast<struct fi_mr_raw_attr *>(argument);
        const bool is_enough = *raw->key_size >= sizeof(key);
        *raw->key_size = sizeof(key);
        if (!is_enough)
            return -FI_ETOOSMALL;
        std::memcpy(raw->raw_key, &key, sizeof(key));
        if (raw->base_addr)
            *raw->base_addr = 0;
        return 0;
    }
    default:
        return -FI_ENOSYS;
    }
}

} // namespace pin
