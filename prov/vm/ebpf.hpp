// SPDX-License-Identifier: BSD-2-Clause
// The event source that needs no system call: a program in the kernel writes the events into memory that the process maps.
// It sees changes of any kind of memory, also by other processes, before the address can be used again.
#pragma once

#include "sys/fork.hpp"
#include "vm/ebpf_program.hpp"
#include "vm/ebpf_queue.hpp"
#include "vm/source.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace regcache {

// position() reads one word. There is no thread: readers look at the queue from time to time. The event of a change comes
// after its pages are gone and before its system call returns, so nothing is ever "on its way".
class Ebpf final : public Source, private ForkListener {
public:
    // Asks the node's service for a queue, or loads the program itself. Throws Error with both reasons.
    Ebpf();
    ~Ebpf() override;

    const char *name() const noexcept override { return "ebpf"; }
    Watch watch(WatchedRange &watched) noexcept override;
    void unwatch(WatchedRange &watched) noexcept override;
    std::uint64_t position() noexcept override;
    EventQueue::Cursor end() const noexcept override { return is_off_.load_relaxed() ? 0 : queue_->head(); }
    EventQueue::Next next(EventQueue::Cursor &cursor, Event &event) const noexcept override;
    unsigned look_every_ms() const noexcept override { return 200; }

private:
    void before_fork() noexcept override {}
    void after_fork_in_parent() noexcept override {}
    void after_fork_in_child() noexcept override;

    std::unique_ptr<EbpfProgram> program_; // where no service gave the queue
    std::vector<Fd> held_;                 // what keeps the service's program attached, and the connection to it
    std::optional<EbpfQueue> queue_;
    Atomic<bool> is_off_{false};
};

} // namespace regcache
