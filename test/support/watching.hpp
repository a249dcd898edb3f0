// SPDX-License-Identifier: BSD-2-Clause
// A watched range, and what has been told since a moment. For tests of real event sources.
#pragma once

#include "vm/source.hpp"

#include <cstddef>
#include <vector>

namespace regcache::test {

// `count` pages of a mapping, from page `first` on.
inline Range part_of(const void *memory, std::size_t first, std::size_t count)
{
    const auto begin = reinterpret_cast<std::uintptr_t>(memory) + first * page_size();
    return {begin, begin + count * page_size()};
}

// Watched as long as it lives, if the source agrees.
class Watching {
public:
    Watching(Source &source, Range range) : source_(source), watched_{range, {}}, answer_(source.watch(watched_)) {}
    ~Watching() { stop(); }
    Watching(const Watching &) = delete;
    Watching &operator=(const Watching &) = delete;

    Watch answer() const { return answer_; }
    bool works() const { return answer_ == Watch::Watched; }
    Range range() const { return watched_.range; } // perhaps wider than asked for
    void stop()
    {
        if (works())
            source_.unwatch(watched_);
        answer_ = Watch::NoEvents;
    }

private:
    Source &source_;
    WatchedRange watched_;
    Watch answer_;
};

// What a source has told since this was made.
class Told {
public:
    explicit Told(Source &source) : source_(source), position_(source.position()), cursor_(source.end()) {}

    // Asks as a hit does: the position first.
    bool has_moved()
    {
        const bool has = source_.position() != position_;
        read();
        return has;
    }
    const std::vector<Event> &events()
    {
        source_.position();
        read();
        return events_;
    }
    // Whether all of `range` was told to have changed, perhaps piece by piece.
    bool tells_of(Range range)
    {
        events();
        for (std::uintptr_t page = range.begin; page < range.end; page += page_size())
            if (!was_lost_ && !touches({page, page + page_size()}))
                return false;
        return true;
    }
    // Whether any of it was.
    bool touches(Range range)
    {
        for (const Event &event : events_)
            if (event.change != Change::Arrived && event.range.overlaps(range))
                return true;
        return was_lost_;
    }
    bool was_lost() const { return was_lost_; }

private:
    void read()
    {
        for (Event event;;)
            switch (source_.next(cursor_, event)) {
            case EventQueue::Next::Empty:
                return;
            case EventQueue::Next::Lost:
                was_lost_ = true;
                break;
            case EventQueue::Next::One:
                events_.push_back(event);
            }
    }

    Source &source_;
    std::uint64_t position_;
    EventQueue::Cursor cursor_;
    std::vector<Event> events_;
    bool was_lost_ = false;
};

} // namespace regcache::test
