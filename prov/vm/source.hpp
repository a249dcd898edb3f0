// SPDX-License-Identifier: BSD-2-Clause
// What an event source promises: to tell, before anybody can be harmed, that the pages behind a watched range are no
// longer what they were. Says nothing of how a source learns it.
#pragma once

#include "index/interval_tree.hpp"
#include "sys/bell.hpp"
#include "sys/range.hpp"
#include "vm/event_queue.hpp"

#include <cstdint>

namespace regcache {

// Why a range can't be watched, or that it is. The reasons are what users are told.
enum class Watch : std::uint8_t {
    Watched,
    NoEvents,   // this source sees no changes at all (none)
    NotMapped,  // nothing, or not everything, is mapped there
    SharedKind, // a shared mapping or a file: it can change without an event
    Refused,    // the kernel refuses: another userfaultfd, a part of a huge page, a read-only or special mapping
    TooMany,    // no more mappings can be split (vm.max_map_count)
};
inline constexpr unsigned kWatchAnswers = 6;
const char *describe(Watch answer) noexcept; // a few words for a log line

// What is watched for one region: whole pages. The source keeps it in an index of its own while it is watched, so that
// watching allocates nothing; it must stay where it is until then.
struct WatchedRange {
    Range range;
    IntervalNode<WatchedRange> in_index;
};

// One source serves every cache of a process: the kernel lets one userfaultfd watch a page, not two.
//
// The contract. If a change of the pages behind a watched page is finished before a thread calls position(), then
// position() differs from what it was before the change, and the change can be read with next(). "Finished" means that
// its system call has returned, or that the address was given to somebody else. No event is lost: a reader of the queue
// that falls behind is told that everything has changed.
class Source {
public:
    virtual ~Source() = default;

    virtual const char *name() const noexcept = 0;

    // Begins to watch watched.range, which the source may widen to larger pages. Ranges may overlap; each Watched answer
    // is ended by one unwatch(). Any thread, with no lock held; takes Rank::Watches; may block shortly in the kernel, never
    // on a reader of events.
    virtual Watch watch(WatchedRange &watched) noexcept = 0;
    virtual void unwatch(WatchedRange &watched) noexcept = 0;

    // Where the queue stands, after making sure that no change is on its way. Any thread, also with a cache's lock held;
    // may wait for the thread that reads events, which waits for nobody.
    virtual std::uint64_t position() noexcept = 0;

    // The same for callers that can do without: false when one change after the other was on its way for some milliseconds.
    // Threads that change watched memory all the time would keep position() waiting for as long as they do.
    virtual bool try_position(std::uint64_t &position) noexcept
    {
        position = this->position();
        return true;
    }

    // Ends it for good while regions may still be watched, at the end of the process: nothing is watched any more, and
    // watch() answers NoEvents. No other call may be under way.
    virtual void stop() noexcept {}

    // How often position() had to wait for a change on its way.
    virtual std::uint64_t confirm_waits() const noexcept { return 0; }

    // The events. A reader begins with the cursor of end(), and owns it.
    virtual EventQueue::Cursor end() const noexcept { return queue_.end(); }
    virtual EventQueue::Next next(EventQueue::Cursor &cursor, Event &event) const noexcept
    {
        return queue_.next(cursor, event);
    }

    // After how many milliseconds without a ring a reader looks by itself.
    virtual unsigned look_every_ms() const noexcept { return 1000; }

    // Where a source's own thread pushes events; unused by a source whose queue is elsewhere.
    EventQueue &queue() noexcept { return queue_; }
    // Rung after events were pushed.
    Bell &bell() noexcept { return bell_; }

private:
    EventQueue queue_;
    Bell bell_;
};

} // namespace regcache
