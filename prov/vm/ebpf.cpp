// SPDX-License-Identifier: BSD-2-Clause
// Gets a queue from the service or from a program of its own, and reads it.
#include "vm/ebpf.hpp"

#include "sys/error.hpp"
#include "vm/service_client.hpp"

#include <unistd.h>

#include <cerrno>
#include <string>

namespace regcache {

Ebpf::Ebpf()
{
    std::string why;
    try {
        Served served = ask_service();
        queue_.emplace(served.queue);
        held_ = std::move(served.held);
    } catch (const Error &error) {
        why = error.what();
    }
    if (!queue_) {
        try {
            program_ = std::make_unique<EbpfProgram>();
            queue_.emplace(program_->make_queue(getpid(), geteuid()).map);
        } catch (const Error &error) {
            throw Error(error.code(), why + "; without the service: " + error.what());
        }
    }
    add_fork_listener(*this);
}

Ebpf::~Ebpf()
{
    remove_fork_listener(*this);
}

Watch Ebpf::watch(WatchedRange &watched) noexcept
{
    if (is_off_.load_relaxed())
        return Watch::NoEvents;
    queue_->watch(watched.range);
    return Watch::Watched;
}

void Ebpf::unwatch(WatchedRange &watched) noexcept
{
    if (!is_off_.load_relaxed())
        queue_->unwatch(watched.range);
}

std::uint64_t Ebpf::position() noexcept
{
    return is_off_.load_relaxed() ? 0 : queue_->head();
}

EventQueue::Next Ebpf::next(EventQueue::Cursor &cursor, Event &event) const noexcept
{
    return is_off_.load_relaxed() ? EventQueue::Next::Empty : queue_->next(cursor, event);
}

// The queue isn't mapped in the child (MADV_DONTFORK), and the child's own changes aren't told. The descriptors would keep
// the program attached and the service believing that the parent lives.
void Ebpf::after_fork_in_child() noexcept
{
    is_off_.store_relaxed(true);
    queue_->forget();
    for (Fd &fd : held_)
        fd.close();
}

} // namespace regcache
