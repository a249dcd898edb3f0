// SPDX-License-Identifier: BSD-2-Clause
// How the cache's registrations are made in the lower domain, and with which keys.
#pragma once

#include "cache/lower.hpp"
#include "sys/atomic.hpp"

#include <rdma/fi_domain.h>

#include <cstddef>
#include <cstdint>

namespace regcache {

// Any thread. Where the lower provider takes keys from its user, every registration gets one that no other has.
class Registrar final : public Lower {
public:
    enum class Keys : std::uint8_t {
        OfLower,       // the lower provider chooses them
        Ours,          // we choose all of them
        OursBesideApp, // the application chooses some: ours are from the upper half of what fits
    };
    // `flags` go with each registration of the cache.
    Registrar(fid_domain *lower, Keys keys, std::size_t key_bytes, std::uint64_t flags) noexcept;

    int register_range(Range range, Rights rights, void **registration) noexcept override;
    int deregister(void *registration) noexcept override;

    // Registers as `attr` says but for the key, which is chosen here if keys are ours.
    int register_as(const fi_mr_attr &attr, std::uint64_t flags, fid_mr **region) noexcept;

private:
    template <class Register>
    int with_key(Register &&try_key) noexcept;

    fid_domain *const lower_;
    const Keys keys_;
    const std::uint64_t flags_;
    const std::uint64_t first_key_, last_key_;
    Atomic<std::uint64_t> next_key_{std::uint64_t{0}};
};

} // namespace regcache
