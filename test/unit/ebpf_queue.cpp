// SPDX-License-Identifier: BSD-2-Clause
// vm/ebpf_queue.cpp: how the kernel's queue is read. The kernel is played by the test, which writes the same memory.
#include "vm/ebpf_queue.hpp"

#include "sys/error.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include <criterion/criterion.h>

using namespace regcache;
using Next = EventQueue::Next;

namespace {

// The memory behind a queue, and what the program in the kernel does to it.
class Kernel {
public:
    Kernel() : map(memfd_create("queue", MFD_CLOEXEC))
    {
        cr_assert(map && ftruncate(map.number(), sizeof(regcache_queue)) == 0);
        void *const memory =
            mmap(nullptr, sizeof(regcache_queue), PROT_READ | PROT_WRITE, MAP_SHARED, map.number(), 0);
        cr_assert(memory != MAP_FAILED);
        queue = static_cast<regcache_queue *>(memory);
    }
    ~Kernel() { munmap(queue, sizeof(regcache_queue)); }
    Kernel(const Kernel &) = delete;
    Kernel &operator=(const Kernel &) = delete;

    std::uint64_t take_number() { return std::atomic_ref(queue->head).fetch_add(1); }
    void fill(std::uint64_t number, Range range)
    {
        regcache_slot &slot = queue->slots[number % REGCACHE_SLOTS];
        std::atomic_ref(slot.number).store(0);
        std::atomic_ref(slot.begin).store(range.begin, std::memory_order_relaxed);
        std::atomic_ref(slot.end).store(range.end, std::memory_order_relaxed);
        std::atomic_ref(slot.number).store(number + 1);
    }
    void tell(Range range) { fill(take_number(), range); }
    unsigned watched(std::uintptr_t granule) const { return queue->watched[granule % REGCACHE_GRANULES]; }

    Fd map;
    regcache_queue *queue = nullptr;
};

constexpr Range numbered(std::uint64_t n)
{
    return {0x1000 * n, 0x1000 * n + 0x1000};
}

constexpr std::uintptr_t kGranule = std::uintptr_t{1} << REGCACHE_GRANULE_SHIFT;

} // namespace

Test(ebpf_queue, tells_events_in_their_order)
{
    Kernel kernel;
    EbpfQueue queue(kernel.map);
    EventQueue::Cursor cursor = queue.head();
    Event event;
    cr_expect(queue.next(cursor, event) == Next::Empty);
    for (std::uint64_t n = 0; n < 100; ++n)
        kernel.tell(numbered(n));
    cr_expect(queue.head() == 100);
    for (std::uint64_t n = 0; n < 100; ++n) {
        cr_assert(queue.next(cursor, event) == Next::One);
        cr_expect(event.range == numbered(n) && event.change == Change::Gone);
    }
    cr_expect(queue.next(cursor, event) == Next::Empty);
}

Test(ebpf_queue, reader_that_falls_behind_is_told_once)
{
    Kernel kernel;
    EbpfQueue queue(kernel.map);
    EventQueue::Cursor cursor = queue.head();
    for (std::uint64_t n = 0; n <= REGCACHE_SLOTS; ++n)
        kernel.tell(numbered(n));
    Event event;
    cr_expect(queue.next(cursor, event) == Next::Lost);
    cr_expect(queue.next(cursor, event) == Next::Empty);
    kernel.tell(numbered(7));
    cr_expect(queue.next(cursor, event) == Next::One);
    cr_expect(event.range == numbered(7));
}

Test(ebpf_queue, full_queue_loses_nothing)
{
    Kernel kernel;
    EbpfQueue queue(kernel.map);
    EventQueue::Cursor cursor = queue.head();
    for (std::uint64_t n = 0; n < REGCACHE_SLOTS; ++n)
        kernel.tell(numbered(n));
    Event event;
    for (std::uint64_t n = 0; n < REGCACHE_SLOTS; ++n) {
        cr_assert(queue.next(cursor, event) == Next::One);
        cr_assert(event.range == numbered(n));
    }
}

// A thread in the kernel has taken a number and doesn't get to fill its slot.
Test(ebpf_queue, slot_that_is_not_filled_counts_as_everything)
{
    Kernel kernel;
    EbpfQueue queue(kernel.map);
    EventQueue::Cursor cursor = queue.head();
    const std::uint64_t number = kernel.take_number();
    kernel.tell(numbered(1));
    Event event;
    cr_expect(queue.next(cursor, event) == Next::Lost);
    kernel.fill(number, numbered(0)); // it comes later: whoever was told Lost knows of it
    cr_expect(queue.next(cursor, event) == Next::Empty);
}

Test(ebpf_queue, slot_of_an_earlier_round_is_not_taken_for_this_one)
{
    Kernel kernel;
    EbpfQueue queue(kernel.map);
    for (std::uint64_t n = 0; n < REGCACHE_SLOTS; ++n)
        kernel.tell(numbered(n));
    EventQueue::Cursor cursor = queue.head();
    kernel.take_number(); // its slot still holds event 0
    Event event;
    cr_expect(queue.next(cursor, event) == Next::Lost);
}

Test(ebpf_queue, readers_beside_several_writers_see_whole_events_or_are_told)
{
    Kernel kernel;
    EbpfQueue queue(kernel.map);
    EventQueue::Cursor cursor = queue.head();
    constexpr std::uint64_t kEvents = 100'000;
    std::thread writers[2];
    for (std::thread &writer : writers)
        writer = std::thread([&] {
            for (std::uint64_t n = 0; n < kEvents; ++n)
                kernel.tell(numbered(n));
        });
    bool is_right = true;
    while (cursor < 2 * kEvents) {
        Event event;
        if (queue.next(cursor, event) == Next::One)
            is_right = is_right && event.range.end == event.range.begin + 0x1000 && event.range.begin % 0x1000 == 0 &&
                       event.range.begin / 0x1000 < kEvents;
    }
    for (std::thread &writer : writers)
        writer.join();
    cr_expect(is_right);
}

Test(ebpf_queue, watching_is_counted_in_each_granule)
{
    Kernel kernel;
    EbpfQueue queue(kernel.map);
    const Range small{5 * kGranule + 100, 5 * kGranule + 200}, wide{4 * kGranule + 1, 7 * kGranule + 1};
    queue.watch(small);
    queue.watch(wide);
    cr_expect(kernel.watched(3) == 0);
    cr_expect(kernel.watched(4) == 1);
    cr_expect(kernel.watched(5) == 2);
    cr_expect(kernel.watched(6) == 1);
    cr_expect(kernel.watched(7) == 1);
    cr_expect(kernel.watched(8) == 0);
    queue.unwatch(small);
    cr_expect(kernel.watched(5) == 1);
    queue.unwatch(wide);
    for (std::uintptr_t granule = 0; granule < REGCACHE_GRANULES; ++granule)
        cr_assert(kernel.watched(granule) == 0);
}

Test(ebpf_queue, range_that_ends_at_a_granule_does_not_count_in_the_next)
{
    Kernel kernel;
    EbpfQueue queue(kernel.map);
    queue.watch({kGranule, 2 * kGranule});
    cr_expect(kernel.watched(1) == 1 && kernel.watched(2) == 0);
    queue.watch({}); // nothing
    cr_expect(kernel.watched(0) == 0);
}

Test(ebpf_queue, granules_are_hashed)
{
    Kernel kernel;
    EbpfQueue queue(kernel.map);
    const std::uintptr_t far = (REGCACHE_GRANULES + 3) * kGranule;
    queue.watch({far, far + 1});
    cr_expect(kernel.watched(3) == 1);
}

Test(ebpf_queue, what_cannot_be_mapped_is_named)
{
    const Fd nothing;
    try {
        const EbpfQueue queue(nothing);
        cr_assert(false, "nothing was mapped");
    } catch (const Error &error) {
        cr_expect(std::string(error.what()).find("can't be mapped") != std::string::npos);
    }
}

Test(ebpf_queue, forgotten_queue_stays_where_it_is)
{
    Kernel kernel;
    {
        EbpfQueue queue(kernel.map);
        queue.forget();
    } // doesn't unmap what may be somebody else's by now
    cr_expect(true);
}
