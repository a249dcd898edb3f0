// SPDX-License-Identifier: BSD-2-Clause
// A lower provider that a test plays: it counts, refuses as it is told, and lets the test do things inside its calls. Pins
// nothing.
#pragma once

#include "cache/lower.hpp"
#include "cache/region.hpp"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace regcache::test {

// One registration; kept until the lower goes, so that a second deregistration is seen.
struct ScriptedRegistration {
    Range range;
    Rights rights = 0;
    bool is_live = true;
};

// Any thread may call the provider; a test sets the public members while nobody does.
class ScriptedLower final : public Lower {
public:
    // Called with no lock of the lower's held, before it does anything.
    std::function<void(Range)> on_register, on_deregister;
    // Called after a registration was made, or refused.
    std::function<void(Range)> after_register, after_refusal;
    // What it holds at most; more is refused with `full`.
    std::size_t max_count = SIZE_MAX, max_bytes = SIZE_MAX;
    int full = -ENOMEM;
    // What deregister() answers; then the registration stays.
    std::atomic<int> deregister_error{0};

    // Refuses `times` registrations with `error`, after `first` more that succeed.
    void refuse(int error, std::size_t times = 1, std::size_t first = 0)
    {
        const std::lock_guard guard(mutex_);
        refusal_ = error;
        refuse_from_ = asked_ + first;
        refuse_until_ = refuse_from_ + times;
    }

    std::size_t asked() const { return read(asked_); }
    std::size_t made() const { return read(made_); }
    std::size_t live() const { return read(live_); }
    std::size_t live_bytes() const { return read(bytes_); }
    std::size_t wrong() const { return read(wrong_); } // given back twice
    std::size_t failed() const { return read(failed_); }

    // Whether exactly this is registered now.
    bool has(Range range) const
    {
        const std::lock_guard guard(mutex_);
        for (const auto &each : all_)
            if (each->is_live && each->range == range)
                return true;
        return false;
    }

    int register_range(Range range, Rights rights, void **registration) noexcept override
    {
        if (on_register)
            on_register(range);
        const int error = make(range, rights, registration);
        if (const auto &after = error == 0 ? after_register : after_refusal)
            after(range);
        return error;
    }

    int deregister(void *registration) noexcept override
    {
        auto &ended = *static_cast<ScriptedRegistration *>(registration);
        if (on_deregister)
            on_deregister(ended.range);
        const std::lock_guard guard(mutex_);
        if (const int error = deregister_error; error != 0) {
            ++failed_;
            return error;
        }
        if (!ended.is_live)
            ++wrong_;
        ended.is_live = false;
        --live_;
        bytes_ -= ended.range.size();
        return 0;
    }

private:
    int make(Range range, Rights rights, void **registration)
    {
        const std::lock_guard guard(mutex_);
        const std::size_t number = asked_++;
        if (number >= refuse_from_ && number < refuse_until_)
            return refusal_;
        if (live_ + 1 > max_count || bytes_ + range.size() > max_bytes)
            return full;
        all_.push_back(std::make_unique<ScriptedRegistration>(ScriptedRegistration{range, rights}));
        *registration = all_.back().get();
        ++made_;
        ++live_;
        bytes_ += range.size();
        return 0;
    }

    std::size_t read(const std::size_t &number) const
    {
        const std::lock_guard guard(mutex_);
        return number;
    }

    mutable std::mutex mutex_;
    std::vector<std::unique_ptr<ScriptedRegistration>> all_;
    std::size_t asked_ = 0, made_ = 0, live_ = 0, bytes_ = 0, wrong_ = 0, failed_ = 0;
    int refusal_ = 0;
    std::size_t refuse_from_ = SIZE_MAX, refuse_until_ = SIZE_MAX;
};

inline const ScriptedRegistration &registration_of(const Region &region)
{
    return *static_cast<const ScriptedRegistration *>(region.registration);
}

} // namespace regcache::test
