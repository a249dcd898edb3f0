// SPDX-License-Identifier: BSD-2-Clause
// Which registrations may be shared, and what becomes of each.
#include "fid/domain.hpp"
#include "fid/mr.hpp"
#include "sys/log.hpp"

#include <rdma/fi_errno.h>

#include <new>

namespace regcache {
namespace {

constexpr std::uint64_t kRemote = FI_REMOTE_READ | FI_REMOTE_WRITE;

// Why requests aren't cached that a program may make all the time.
constexpr unsigned kOneHandle = 1, kKeys = 2, kDevice = 4;

} // namespace

int Domain::reg(const void *buffer, std::size_t bytes, std::uint64_t access, std::uint64_t offset,
                std::uint64_t requested_key, std::uint64_t flags, fid_mr **region, void *context) noexcept
{
    if (bytes != 0 && may_cache(access, offset, flags))
        return register_cached(buffer, bytes, access, requested_key, context, region);
    const iovec piece{const_cast<void *>(buffer), bytes};
    return regv(&piece, 1, access, offset, requested_key, flags, region, context);
}

int Domain::regv(const iovec *pieces, std::size_t count, std::uint64_t access, std::uint64_t offset,
                 std::uint64_t requested_key, std::uint64_t flags, fid_mr **region, void *context) noexcept
{
    // A newer libfabric's structure is longer: what it reads behind ours is zero, unspecified.
    struct {
        fi_mr_attr attr;
        std::uint64_t newer_fields[32];
    } own{};
    own.attr.mr_iov = pieces;
    own.attr.iov_count = count;
    own.attr.access = access;
    own.attr.offset = offset;
    own.attr.requested_key = requested_key;
    own.attr.context = context;
    return regattr(&own.attr, flags, region);
}

int Domain::regattr(const fi_mr_attr *attr, std::uint64_t flags, fid_mr **region) noexcept
{
    if (!attr || !region)
        return -FI_EINVAL;
    // What an older application doesn't know of it has not set.
    const bool is_on_device = has_devices_ && attr->iface != FI_HMEM_SYSTEM;
    const bool is_plain = flags == 0 && attr->iov_count == 1 && attr->mr_iov && attr->mr_iov[0].iov_len != 0 &&
                          attr->auth_key_size == 0 && !is_on_device;
    if (is_plain && may_cache(attr->access, attr->offset, flags))
        return register_cached(attr->mr_iov[0].iov_base, attr->mr_iov[0].iov_len, attr->access, attr->requested_key,
                               attr->context, region);
    if (is_on_device)
        explain_once(kDevice, "memory of devices isn't cached");
    return pass_through(*attr, flags, region);
}

bool Domain::may_cache(std::uint64_t access, std::uint64_t offset, std::uint64_t flags) noexcept
{
    if (!may_cache_any_) {
        explain_once(kOneHandle, "memory isn't cached, since the lower provider's regions are bound or refreshed one by one "
                                 "(FI_MR_ENDPOINT, FI_MR_RMA_EVENT, FI_MR_COLLECTIVE or FI_MR_MMU_NOTIFY)");
        return false;
    }
    if (flags != 0 || offset != 0)
        return false;
    // A key that the application insists on names one registration.
    if (keys_ != Registrar::Keys::OursBesideApp || (access & kRemote) == 0)
        return true;
    explain_once(kKeys, "memory with remote access isn't cached, since the application chooses the keys (it doesn't allow "
                        "FI_MR_PROV_KEY)");
    return false;
}

void Domain::explain_once(unsigned reason, const char *what) noexcept
{
    if ((explained_.load_relaxed() & reason) == 0 && (explained_.or_relaxed(reason) & reason) == 0)
        log(LogLevel::Warning, "%s: %s (said once)", name_.c_str(), what);
}

int Domain::register_cached(const void *buffer, std::size_t bytes, std::uint64_t access, std::uint64_t requested_key,
                            void *context, fid_mr **region) noexcept
{
    if (reinterpret_cast<std::uintptr_t>(buffer) > UINTPTR_MAX - bytes)
        return -FI_EINVAL;
    const Match match = counts_from_start_ && (access & kRemote) != 0 ? Match::SameStart : Match::Anywhere;
    Region *cached = nullptr;
    if (const int error = cache_->acquire(buffer, bytes, access, match, &cached); error != 0)
        return error;
    auto *const handle = new (std::nothrow) Mr(*this, *cached, context);
    if (!handle) {
        cache_->release(cached);
        return -FI_ENOMEM;
    }
    if (keys_ == Registrar::Keys::OursBesideApp)
        handle->key = requested_key; // local access only: nobody uses it but to find it as it was given
    count_handle(1);
    *region = handle;
    return 0;
}

int Domain::pass_through(const fi_mr_attr &attr, std::uint64_t flags, fid_mr **region) noexcept
{
    cache_->count_passed_through();
    fid_mr *lower = nullptr;
    int error = registrar_.register_as(attr, flags, &lower);
    if (error == -FI_ENOMEM || error == -FI_EAGAIN || error == -FI_ENOKEY) {
        // What nobody uses makes room, and may hold the key.
        cache_->flush();
        error = registrar_.register_as(attr, flags, &lower);
    }
    if (error != 0)
        return error;
    auto *const handle = new (std::nothrow) Mr(*this, lower, attr.context);
    if (!handle) {
        fi_close(&lower->fid);
        return -FI_ENOMEM;
    }
    count_handle(1);
    *region = handle;
    return 0;
}

int Domain::bind_cached(Region &region, struct fid *object, std::uint64_t flags) noexcept
{
    if (!cache_->take_out(region))
        return -FI_EOPNOTSUPP;
    return fi_mr_bind(static_cast<fid_mr *>(region.registration), object, flags);
}

// In a forked child, what was inherited is the parent's.
int Domain::close_owned(fid_mr *lower) noexcept
{
    return generation_ == fork_generation() ? fi_close(&lower->fid) : 0;
}

} // namespace regcache
