// SPDX-License-Identifier: BSD-2-Clause
// An event source that a test plays: it tells what the test says, and answers as it is told. Looks at no memory.
#pragma once

#include "vm/source.hpp"

#include <atomic>
#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

namespace regcache::test {

// Any thread may call the source; a test sets the public members while nobody does. Whoever follows the events is woken
// only by ring(), so that nothing happens behind a test's back.
class ScriptedSource final : public Source {
public:
    Watch answer = Watch::Watched;
    std::size_t widens_to = 0; // a page size that watched ranges are widened to
    unsigned looks_every_ms = 3'600'000;
    std::function<void(Range)> on_watch, on_unwatch;
    std::function<void()> on_position;
    std::atomic<bool> is_busy{false}; // one change after the other is on its way
    std::atomic<bool> is_stopped{false};

    // A finished change.
    void tell(Range range, Change change = Change::Gone)
    {
        const std::lock_guard guard(telling_);
        queue().push({range, change});
        position_ += 2;
    }
    // Pushes an event whose change isn't finished yet: position() doesn't know of it.
    void tell_early(Range range, Change change = Change::Gone)
    {
        const std::lock_guard guard(telling_);
        queue().push({range, change});
    }
    // More events than the queue holds; they concern nobody's memory.
    void overflow()
    {
        for (std::uint64_t i = 0; i <= EventQueue::kSlots; ++i)
            tell({1, 2});
    }
    void ring() { bell().ring(); }

    std::size_t watches() const { return watches_; }
    std::size_t positions() const { return positions_; }
    std::size_t looks() const { return looks_; } // calls of next()
    // unwatch() of what wasn't watched.
    std::size_t wrong() const { return wrong_; }
    std::size_t watched_now() const
    {
        const std::lock_guard guard(mutex_);
        return watched_.size();
    }
    bool watches(Range range) const
    {
        const std::lock_guard guard(mutex_);
        for (const WatchedRange *each : watched_)
            if (each->range == range)
                return true;
        return false;
    }

    const char *name() const noexcept override { return "scripted"; }
    Watch watch(WatchedRange &watched) noexcept override
    {
        ++watches_;
        if (on_watch)
            on_watch(watched.range);
        if (answer != Watch::Watched)
            return answer;
        if (widens_to != 0)
            watched.range = whole_pages(watched.range, widens_to);
        const std::lock_guard guard(mutex_);
        watched_.push_back(&watched);
        return answer;
    }
    void unwatch(WatchedRange &watched) noexcept override
    {
        if (on_unwatch)
            on_unwatch(watched.range);
        const std::lock_guard guard(mutex_);
        if (std::erase(watched_, &watched) != 1)
            ++wrong_;
    }
    std::uint64_t position() noexcept override
    {
        ++positions_;
        if (on_position)
            on_position();
        return position_;
    }
    bool try_position(std::uint64_t &position) noexcept override
    {
        position = this->position();
        if (is_busy)
            position = 0;
        return !is_busy;
    }
    EventQueue::Next next(EventQueue::Cursor &cursor, Event &event) const noexcept override
    {
        ++looks_;
        return Source::next(cursor, event);
    }
    void stop() noexcept override { is_stopped = true; }
    std::uint64_t confirm_waits() const noexcept override { return 7; }
    unsigned look_every_ms() const noexcept override { return looks_every_ms; }

private:
    std::mutex telling_;
    mutable std::mutex mutex_;
    std::vector<const WatchedRange *> watched_;
    std::atomic<std::uint64_t> position_{0};
    std::atomic<std::size_t> watches_{0}, positions_{0}, wrong_{0};
    mutable std::atomic<std::size_t> looks_{0};
};

} // namespace regcache::test
