// SPDX-License-Identifier: BSD-2-Clause
// A provider below that notes what it was asked for, refuses as it is told, and knows each registration by its identity,
// also one that it failed to give back. Pins nothing.
#pragma once

#include "cache/lower.hpp"

#include <cerrno>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace regcache::test {

struct Noted {
    Range range;
    Rights rights = 0;
    bool is_given_back = false; // the cache has asked for it, whatever the answer was
    bool is_live = true;
};

// Any thread may call the provider; a test sets the public members while nobody does.
class NotingLower final : public Lower {
public:
    int refuse_with = 0; // what registering answers, `refuse_times` times
    unsigned refuse_times = 0;
    std::size_t max_count = SIZE_MAX, max_bytes = SIZE_MAX; // more is refused with ENOMEM
    bool fails_to_deregister = false;
    std::function<void()> while_registering;

    int register_range(Range range, Rights rights, void **registration) noexcept override
    {
        if (while_registering)
            while_registering();
        const std::lock_guard guard(mutex_);
        ++asked_;
        if (refuse_times != 0) {
            --refuse_times;
            return refuse_with;
        }
        if (live_ + 1 > max_count || bytes_ + range.size() > max_bytes)
            return -ENOMEM;
        all_.push_back(std::make_unique<Noted>(Noted{range, rights}));
        *registration = all_.back().get();
        ++live_;
        bytes_ += range.size();
        return 0;
    }
    int deregister(void *registration) noexcept override
    {
        auto &noted = *static_cast<Noted *>(registration);
        const std::lock_guard guard(mutex_);
        if (noted.is_given_back)
            ++wrong_;
        noted.is_given_back = true;
        if (fails_to_deregister)
            return -EBUSY;
        noted.is_live = false;
        --live_;
        bytes_ -= noted.range.size();
        return 0;
    }

    bool is_given_back(const Noted &noted) const
    {
        const std::lock_guard guard(mutex_);
        return noted.is_given_back;
    }
    std::size_t asked() const { return read(asked_); }
    std::size_t live_bytes() const { return read(bytes_); }
    std::size_t wrong() const { return read(wrong_); } // given back twice
    // Those that were not given back.
    std::size_t held() const
    {
        const std::lock_guard guard(mutex_);
        std::size_t count = 0;
        for (const auto &each : all_)
            count += !each->is_given_back;
        return count;
    }

private:
    std::size_t read(const std::size_t &number) const
    {
        const std::lock_guard guard(mutex_);
        return number;
    }

    mutable std::mutex mutex_;
    std::vector<std::unique_ptr<Noted>> all_;
    std::size_t asked_ = 0, live_ = 0, bytes_ = 0, wrong_ = 0;
};

} // namespace regcache::test
