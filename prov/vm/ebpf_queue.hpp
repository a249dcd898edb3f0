// SPDX-License-Identifier: BSD-2-Clause
// How a process reads the queue that the program in the kernel writes, and tells it which memory it watches. Doesn't know
// where the queue came from.
#pragma once

#include "sys/atomic.hpp"
#include "sys/fd.hpp"
#include "sys/range.hpp"
#include "vm/ebpf/queue_layout.h"
#include "vm/event_queue.hpp"

namespace regcache {

// The mapped queue: memory shared with the kernel. Many threads of the kernel write, each event in its own slot; any
// number of readers follow, each with a cursor of its own.
class EbpfQueue {
public:
    // Maps the BPF map behind `map`, whose one value is a regcache_queue. Throws Error.
    explicit EbpfQueue(const Fd &map);
    EbpfQueue(const EbpfQueue &) = delete;
    EbpfQueue &operator=(const EbpfQueue &) = delete;
    ~EbpfQueue();
    // In a forked child, where the queue isn't mapped and its place may be somebody else's.
    void forget() noexcept { shared_ = nullptr; }

    // How many events there have been: the look that each hit takes, a word that is usually in the first-level cache.
    std::uint64_t head() const noexcept { return shared_->head.load_acquire(); }

    EventQueue::Next next(EventQueue::Cursor &cursor, Event &event) const noexcept;

    // Counts one more, or one less, watched range. The kernel tells of changes only where something is watched.
    void watch(Range range) noexcept { count(range, 1); }
    void unwatch(Range range) noexcept { count(range, static_cast<std::uint32_t>(-1)); }

private:
    struct Slot {
        Atomic<std::uint64_t> number, begin, end, unused;
    };
    // regcache_queue, with the words as atomics.
    struct Shared {
        Atomic<std::uint64_t> head;
        std::uint64_t unused[7];
        Atomic<std::uint32_t> watched[REGCACHE_GRANULES];
        Slot slots[REGCACHE_SLOTS];
    };
    static_assert(sizeof(Shared) == sizeof(regcache_queue));

    void count(Range range, std::uint32_t amount) noexcept;

    Shared *shared_;
};

} // namespace regcache
