// SPDX-License-Identifier: BSD-2-Clause
// Which ranges are about to lose their pages: those of changes that are told before they happen (MADV_DONTNEED, FREE and
// REMOVE on userfaultfd). A registration made in between would pin the old pages and never hear of it.
#pragma once

#include "sys/range.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace regcache {

// The kernel doesn't tell when such a change is done: the thread that makes it was woken and only has to run. So a range
// stays here for kHoldNs after its event was read. When there are more than fit, everything is held. Guarded by its owner.
class Quarantine {
public:
    static constexpr std::uint64_t kHoldNs = 100'000'000;

    void add(const Range &range, std::uint64_t now_ns) noexcept
    {
        Held &slot = held_[next_ % held_.size()];
        if (now_ns < slot.until_ns)
            add_everything(now_ns);
        slot = {range, now_ns + kHoldNs};
        ++next_;
        any_until_ns_ = now_ns + kHoldNs;
    }
    void add_everything(std::uint64_t now_ns) noexcept { all_until_ns_ = any_until_ns_ = now_ns + kHoldNs; }

    bool may_hold() const noexcept { return any_until_ns_ != 0; }
    bool holds(const Range &range, std::uint64_t now_ns) noexcept
    {
        if (now_ns >= any_until_ns_) {
            any_until_ns_ = 0;
            return false;
        }
        if (now_ns < all_until_ns_)
            return true;
        for (const Held &held : held_)
            if (now_ns < held.until_ns && held.range.overlaps(range))
                return true;
        return false;
    }

private:
    struct Held {
        Range range;
        std::uint64_t until_ns = 0;
    };
    std::array<Held, 32> held_{};
    std::size_t next_ = 0;
    std::uint64_t all_until_ns_ = 0;
    std::uint64_t any_until_ns_ = 0; // 0: nothing is held
};

} // namespace regcache
