// SPDX-License-Identifier: BSD-2-Clause
// Registers below, and tries the next key while one is taken.
#include "fid/registrar.hpp"

#include <rdma/fi_errno.h>

namespace regcache {
namespace {

constexpr std::uint64_t last_of(std::size_t key_bytes) noexcept
{
    return key_bytes == 0 || key_bytes >= 8 ? UINT64_MAX - 1 : (std::uint64_t{1} << (8 * key_bytes)) - 1;
}

constexpr int kMostTries = 4096;

} // namespace

Registrar::Registrar(fid_domain *lower, Keys keys, std::size_t key_bytes, std::uint64_t flags) noexcept
    : lower_(lower), keys_(keys), flags_(flags), first_key_(keys == Keys::OursBesideApp ? last_of(key_bytes) / 2 + 1 : 1),
      last_key_(last_of(key_bytes))
{
}

template <class Register>
int Registrar::with_key(Register &&try_key) noexcept
{
    if (keys_ == Keys::OfLower)
        return try_key(0);
    int error = -FI_ENOKEY;
    for (int turn = 0; turn < kMostTries && error == -FI_ENOKEY; ++turn)
        error = try_key(first_key_ + next_key_.add_relaxed(1) % (last_key_ - first_key_ + 1));
    return error;
}

int Registrar::register_range(Range range, Rights rights, void **registration) noexcept
{
    fid_mr *region = nullptr;
    const int error = with_key([&](std::uint64_t key) {
        return fi_mr_reg(lower_, range.address(), range.size(), rights, 0, key, flags_, &region, nullptr);
    });
    if (error == 0)
        *registration = region;
    return error;
}

int Registrar::deregister(void *registration) noexcept
{
    return fi_close(&static_cast<fid_mr *>(registration)->fid);
}

int Registrar::register_as(const fi_mr_attr &attr, std::uint64_t flags, fid_mr **region) noexcept
{
    if (keys_ != Keys::Ours)
        return fi_mr_regattr(lower_, &attr, flags, region);
    // A newer libfabric's structure is longer: what it reads behind ours is zero, unspecified.
    struct {
        fi_mr_attr attr;
        std::uint64_t newer_fields[32];
    } own{attr, {}};
    return with_key([&](std::uint64_t key) {
        own.attr.requested_key = key;
        return fi_mr_regattr(lower_, &own.attr, flags, region);
    });
}

} // namespace regcache
