// SPDX-License-Identifier: BSD-2-Clause
// What has changed lately: a ring that one thread writes and any number of readers follow, each with a cursor of its own.
// Doesn't know who writes, and takes no lock.
//
//   slots   a power of two; event number n is in slot n % kSlots
//   claimed_ the writer is about to overwrite all events before claimed_ - kSlots
//   head_    events before head_ can be read
//
//   operation | push (one thread at a time)        | next (any thread)
//   push      | -                                  | next copies a slot, then sees in claimed_ whether push may have
//             |                                    | overwritten it meanwhile; if so everything counts as changed
//   next      | as above                           | independent: cursors are the readers' own
//
// A reader that falls behind by more than the ring holds is told Lost once and goes on at the head: overflow is an
// answer, not an error.
#pragma once

#include "sys/atomic.hpp"
#include "sys/range.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace regcache {

enum class Change : std::uint8_t {
    Gone,    // the pages are gone: unmapped, or moved away
    Going,   // the pages will be gone soon: the system call that drops them goes on after it was told
    Arrived, // nothing that was cached has changed: watched pages were moved to here, and are watched still
};

struct Event {
    Range range;
    Change change = Change::Gone;
};

#ifndef REGCACHE_QUEUE_SLOTS
#define REGCACHE_QUEUE_SLOTS 4096
#endif

class EventQueue {
public:
    static constexpr std::uint64_t kSlots = REGCACHE_QUEUE_SLOTS;
    using Cursor = std::uint64_t;

    enum class Next : std::uint8_t { Empty, One, Lost };

    // The cursor of a reader that has seen everything so far.
    Cursor end() const noexcept { return head_.load_acquire(); } // [head]

    // One thread at a time.
    void push(const Event &event) noexcept
    {
        const std::uint64_t number = head_.load_relaxed();
        claimed_.store_relaxed(number + 1);
        fence_release(); // [overwrite] a reader that sees the slot's new words sees the claim
        Slot &slot = slots_[number % kSlots];
        slot.begin.store_relaxed(event.range.begin);
        slot.end.store_relaxed(event.range.end);
        slot.change.store_relaxed(static_cast<std::uintptr_t>(event.change));
        head_.store_release(number + 1); // [head] the slot's words are in place
    }

    // Gives the event at `cursor` and moves on. Any thread that owns the cursor.
    Next next(Cursor &cursor, Event &event) const noexcept
    {
        const std::uint64_t head = head_.load_acquire(); // [head]
        if (cursor == head)
            return Next::Empty;
        const Slot &slot = slots_[cursor % kSlots];
        event.range.begin = slot.begin.load_relaxed();
        event.range.end = slot.end.load_relaxed();
        event.change = static_cast<Change>(slot.change.load_relaxed());
        fence_acquire(); // [overwrite] the claim is looked at after the words
        if (claimed_.load_relaxed() - cursor > kSlots) {
            cursor = head;
            return Next::Lost;
        }
        ++cursor;
        return Next::One;
    }

private:
    struct Slot {
        Atomic<std::uintptr_t> begin, end, change;
    };

    alignas(64) Atomic<std::uint64_t> head_{std::uint64_t{0}};
    Atomic<std::uint64_t> claimed_{std::uint64_t{0}};
    std::array<Slot, kSlots> slots_;
};

} // namespace regcache
