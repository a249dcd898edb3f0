// SPDX-License-Identifier: BSD-2-Clause
// Maps, reads and unmaps the queue.
#include "vm/ebpf_queue.hpp"

#include "sys/error.hpp"

#include <sched.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace regcache {

EbpfQueue::EbpfQueue(const Fd &map)
{
    void *const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, map.number(), 0);
    if (memory == MAP_FAILED)
        throw Error(errno, std::string("the queue of the event program can't be mapped: ") + std::strerror(errno));
    // A forked child must not see what happens in its parent.
    madvise(memory, sizeof(Shared), MADV_DONTFORK);
    shared_ = static_cast<Shared *>(memory);
}

EbpfQueue::~EbpfQueue()
{
    if (shared_)
        munmap(shared_, sizeof(Shared));
}

EventQueue::Next EbpfQueue::next(EventQueue::Cursor &cursor, Event &event) const noexcept
{
    const std::uint64_t end = head();
    if (cursor == end)
        return EventQueue::Next::Empty;
    const Slot &slot = shared_->slots[cursor % REGCACHE_SLOTS];
    // The kernel takes a number first and fills the slot next: it may be doing so on another core, or have been preempted.
    for (int turn = 0; turn < 64; ++turn) {
        const std::uint64_t number = slot.number.load_acquire();
        event.range = {slot.begin.load_relaxed(), slot.end.load_relaxed()};
        event.change = Change::Gone;
        fence_acquire();
        if (number == cursor + 1 && slot.number.load_relaxed() == number) {
            ++cursor;
            return EventQueue::Next::One;
        }
        if (number > cursor + 1 || end - cursor > REGCACHE_SLOTS)
            break;
        sched_yield();
    }
    // Overwritten, or too slow to wait for: everything counts as changed, which includes what the slot tells.
    cursor = end;
    return EventQueue::Next::Lost;
}

void EbpfQueue::count(Range range, std::uint32_t amount) noexcept
{
    if (range.is_empty())
        return;
    const std::uint64_t last = (range.end - 1) >> REGCACHE_GRANULE_SHIFT;
    for (std::uint64_t granule = range.begin >> REGCACHE_GRANULE_SHIFT; granule <= last; ++granule)
        shared_->watched[granule % REGCACHE_GRANULES].add_ordered(amount);
}

} // namespace regcache
