// SPDX-License-Identifier: BSD-2-Clause
// What the thread that reads a userfaultfd does: read, push, say so. It takes no lock, allocates nothing and logs nothing,
// for everybody who changes watched memory waits for it.
#include "vm/userfaultfd.hpp"

#include <linux/userfaultfd.h>
#include <poll.h>
#include <unistd.h>

#include <cstddef>

namespace regcache {
namespace {

void push(EventQueue &queue, const uffd_msg &message) noexcept
{
    const auto &arg = message.arg;
    switch (message.event) {
    case UFFD_EVENT_UNMAP:
        queue.push({{arg.remove.start, arg.remove.end}, Change::Gone});
        break;
    case UFFD_EVENT_REMOVE:
        queue.push({{arg.remove.start, arg.remove.end}, Change::Going});
        break;
    case UFFD_EVENT_REMAP:
        queue.push({{arg.remap.from, arg.remap.from + arg.remap.len}, Change::Gone});
        queue.push({{arg.remap.to, arg.remap.to + arg.remap.len}, Change::Arrived});
        break;
    default:
        break;
    }
}

} // namespace

void Userfaultfd::read_events() noexcept
{
    for (;;) {
        pollfd wait_for[2] = {{uffd_.number(), POLLIN, 0}, {stop_.number(), POLLIN, 0}};
        if (poll(wait_for, 2, -1) < 0)
            continue; // EINTR; ENOMEM passes
        if (wait_for[1].revents != 0)
            return;
        const std::uint64_t word = word_.load_relaxed();
        word_.store_ordered(word + 1); // [word] before the read wakes whoever made the change
        uffd_msg messages[64];
        const ssize_t got = ::read(uffd_.number(), messages, sizeof messages);
        const auto count = got > 0 ? static_cast<std::size_t>(got) / sizeof messages[0] : 0;
        for (std::size_t i = 0; i < count; ++i)
            push(queue(), messages[i]);
        word_.store_release(count != 0 ? word + 2 : word); // [word] the events are in the queue
        if (count != 0)
            bell().ring();
    }
}

} // namespace regcache
