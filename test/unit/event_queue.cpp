// SPDX-License-Identifier: BSD-2-Clause
// vm/event_queue.hpp: what readers are told, also when they are slow. Its races are in test/model.
#include "vm/event_queue.hpp"

#include <atomic>
#include <memory>
#include <thread>

#include <criterion/criterion.h>

using namespace regcache;
using Next = EventQueue::Next;

namespace {

Event numbered(std::uint64_t n)
{
    return {{n, n + 1}, static_cast<Change>(n % 3)};
}

void push(EventQueue &queue, std::uint64_t from, std::uint64_t to)
{
    for (std::uint64_t n = from; n < to; ++n)
        queue.push(numbered(n));
}

} // namespace

Test(event_queue, tells_events_in_their_order)
{
    const auto queue = std::make_unique<EventQueue>();
    EventQueue::Cursor cursor = queue->end();
    Event event;
    cr_expect(queue->next(cursor, event) == Next::Empty);
    push(*queue, 0, 10);
    for (std::uint64_t n = 0; n < 10; ++n) {
        cr_assert(queue->next(cursor, event) == Next::One);
        cr_expect(event.range == numbered(n).range && event.change == numbered(n).change);
    }
    cr_expect(queue->next(cursor, event) == Next::Empty);
}

Test(event_queue, reader_that_begins_late_sees_what_comes_after)
{
    const auto queue = std::make_unique<EventQueue>();
    push(*queue, 0, 100);
    EventQueue::Cursor cursor = queue->end();
    Event event;
    cr_expect(queue->next(cursor, event) == Next::Empty);
    push(*queue, 100, 101);
    cr_expect(queue->next(cursor, event) == Next::One);
    cr_expect(event.range.begin == 100);
}

Test(event_queue, readers_do_not_disturb_each_other)
{
    const auto queue = std::make_unique<EventQueue>();
    EventQueue::Cursor first = queue->end(), second = queue->end();
    push(*queue, 0, 2);
    Event event;
    cr_expect(queue->next(first, event) == Next::One);
    cr_expect(queue->next(first, event) == Next::One);
    cr_expect(queue->next(first, event) == Next::Empty);
    cr_expect(queue->next(second, event) == Next::One);
    cr_expect(event.range.begin == 0);
}

Test(event_queue, full_queue_loses_nothing)
{
    const auto queue = std::make_unique<EventQueue>();
    EventQueue::Cursor cursor = queue->end();
    push(*queue, 0, EventQueue::kSlots);
    Event event;
    for (std::uint64_t n = 0; n < EventQueue::kSlots; ++n) {
        cr_assert(queue->next(cursor, event) == Next::One);
        cr_assert(event.range.begin == n);
    }
    cr_expect(queue->next(cursor, event) == Next::Empty);
}

Test(event_queue, one_more_than_fits_is_told_as_lost_once)
{
    const auto queue = std::make_unique<EventQueue>();
    EventQueue::Cursor cursor = queue->end();
    push(*queue, 0, EventQueue::kSlots + 1);
    Event event;
    cr_expect(queue->next(cursor, event) == Next::Lost);
    cr_expect(queue->next(cursor, event) == Next::Empty);
    push(*queue, 5, 6);
    cr_expect(queue->next(cursor, event) == Next::One);
    cr_expect(event.range.begin == 5);
}

Test(event_queue, goes_round_many_times)
{
    const auto queue = std::make_unique<EventQueue>();
    EventQueue::Cursor cursor = queue->end();
    Event event;
    for (std::uint64_t n = 0; n < 10 * EventQueue::kSlots + 3; ++n) {
        queue->push(numbered(n));
        cr_assert(queue->next(cursor, event) == Next::One);
        cr_assert(event.range == numbered(n).range);
    }
}

// What is read is whole: begin, end and kind belong together.
Test(event_queue, reader_beside_the_writer_sees_whole_events_or_is_told)
{
    const auto queue = std::make_unique<EventQueue>();
    std::atomic<bool> is_done{false};
    constexpr std::uint64_t kEvents = 300'000;
    std::thread writer([&] {
        push(*queue, 0, kEvents);
        is_done = true;
    });
    EventQueue::Cursor cursor = 0;
    std::uint64_t at_least = 0;
    bool is_right = true;
    for (bool is_last = false;;) {
        Event event;
        const Next next = queue->next(cursor, event);
        if (next == Next::One) {
            is_right = is_right && event.range.begin >= at_least && event.range == numbered(event.range.begin).range &&
                       event.change == numbered(event.range.begin).change;
            at_least = event.range.begin + 1;
        } else if (next == Next::Empty) {
            if (is_last)
                break;
            is_last = is_done;
        }
    }
    writer.join();
    cr_expect(is_right);
    cr_expect(cursor == kEvents);
}
