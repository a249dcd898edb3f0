// SPDX-License-Identifier: BSD-2-Clause
// A provider below that counts: what is registered now, and whether anybody gives a registration back twice. Pins nothing.
#pragma once

#include "stress/options.hpp"

#include "cache/lower.hpp"
#include "cache/region.hpp"

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace regcache::test {

// One registration. Freed at the end of the lower only, so that a second deregistration is seen, and harmless.
struct Registered {
    Range range;
    std::uint64_t stamp = 0; // what clock() said when it was made
    std::atomic<bool> is_live{true};
    Registered *older = nullptr;
};

// Any thread. `clock` may be null.
class CountingLower final : public Lower {
public:
    using Clock = std::uint64_t (*)() noexcept;

    explicit CountingLower(Failures &failures, Clock clock = nullptr) noexcept : failures_(failures), clock_(clock) {}
    ~CountingLower()
    {
        while (Registered *each = newest_.load()) {
            newest_.store(each->older);
            delete each;
        }
    }

    int register_range(Range range, Rights, void **registration) noexcept override
    {
        const std::uint64_t stamp = clock_ ? clock_() : 0;
        if (made_.fetch_add(1) % 8 == 0)
            sched_yield(); // pages change here, behind the back of the registration
        live_.fetch_add(1);
        auto *const made = new Registered;
        made->range = range;
        made->stamp = stamp;
        made->older = newest_.load();
        while (!newest_.compare_exchange_weak(made->older, made)) {
        }
        *registration = made;
        return 0;
    }

    int deregister(void *registration) noexcept override
    {
        auto *const ended = static_cast<Registered *>(registration);
        failures_.unless(ended->is_live.exchange(false), "a registration of %#zx is given back twice", ended->range.begin);
        live_.fetch_sub(1);
        return 0;
    }

    long live() const noexcept { return live_.load(); }
    std::uint64_t made() const noexcept { return made_.load(); }

private:
    Failures &failures_;
    const Clock clock_;
    std::atomic<Registered *> newest_{nullptr};
    std::atomic<long> live_{0};
    std::atomic<std::uint64_t> made_{0};
};

inline const Registered &registered(const Region &region) { return *static_cast<const Registered *>(region.registration); }

} // namespace regcache::test
