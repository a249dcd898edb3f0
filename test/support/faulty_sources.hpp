// SPDX-License-Identifier: BSD-2-Clause
// Event sources that don't keep their promise, each in one way: over a real one, so that all the rest is right. For
// controls: a test that finds nothing wrong with these sees nothing.
#pragma once

#include "vm/source.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace regcache::test {

// All right by itself; the others change one thing.
class Wrapped : public Source {
public:
    explicit Wrapped(std::shared_ptr<Source> inner) noexcept : inner_(std::move(inner)) {}

    const char *name() const noexcept override { return inner_->name(); }
    Watch watch(WatchedRange &watched) noexcept override { return inner_->watch(watched); }
    void unwatch(WatchedRange &watched) noexcept override { inner_->unwatch(watched); }
    std::uint64_t position() noexcept override { return inner_->position(); }
    bool try_position(std::uint64_t &position) noexcept override
    {
        position = this->position();
        return true;
    }
    void stop() noexcept override { inner_->stop(); }
    EventQueue::Cursor end() const noexcept override { return inner_->end(); }
    EventQueue::Next next(EventQueue::Cursor &cursor, Event &event) const noexcept override
    {
        return inner_->next(cursor, event);
    }
    unsigned look_every_ms() const noexcept override { return 5; } // nobody rings its bell

protected:
    std::shared_ptr<Source> inner_;
};

// Sees nothing: says that it watches, and tells nothing.
class BlindSource final : public Wrapped {
public:
    using Wrapped::Wrapped;
    std::uint64_t position() noexcept override { return 0; }
    EventQueue::Next next(EventQueue::Cursor &, Event &) const noexcept override { return EventQueue::Next::Empty; }
};

// Sees, but says that nothing has happened: readers never look.
class DeafSource final : public Wrapped {
public:
    using Wrapped::Wrapped;
    std::uint64_t position() noexcept override { return 0; }
};

// Tells what has been read, and never asks whether more is on its way.
class UnconfirmedSource final : public Wrapped {
public:
    using Wrapped::Wrapped;
    std::uint64_t position() noexcept override { return inner_->end(); }
};

// Leaves out the events that `drops` wants dropped, and cuts those that `cuts` changes.
class ForgetfulSource final : public Wrapped {
public:
    using Wrapped::Wrapped;
    std::function<bool(const Event &)> drops;
    std::function<void(Event &)> cuts;

    EventQueue::Next next(EventQueue::Cursor &cursor, Event &event) const noexcept override
    {
        for (;;) {
            const EventQueue::Next next = inner_->next(cursor, event);
            if (next == EventQueue::Next::One && drops && drops(event))
                continue;
            if (next == EventQueue::Next::One && cuts)
                cuts(event);
            return next;
        }
    }
};

// Whoever stops watching silences all others that watch the same pages.
class UncountedSource final : public Wrapped {
public:
    using Wrapped::Wrapped;
    Watch watch(WatchedRange &watched) noexcept override
    {
        const Watch answer = inner_->watch(watched);
        const std::lock_guard guard(mutex_);
        std::erase_if(silenced_, [&](const Range &each) { return each.overlaps(watched.range); });
        return answer;
    }
    void unwatch(WatchedRange &watched) noexcept override
    {
        {
            const std::lock_guard guard(mutex_);
            silenced_.push_back(watched.range);
        }
        inner_->unwatch(watched);
    }
    EventQueue::Next next(EventQueue::Cursor &cursor, Event &event) const noexcept override
    {
        for (;;) {
            const EventQueue::Next next = inner_->next(cursor, event);
            const std::lock_guard guard(mutex_);
            bool is_silenced = false;
            for (const Range &each : silenced_)
                is_silenced = is_silenced || each.overlaps(event.range);
            if (next != EventQueue::Next::One || !is_silenced)
                return next;
        }
    }

private:
    mutable std::mutex mutex_;
    std::vector<Range> silenced_;
};

} // namespace regcache::test
