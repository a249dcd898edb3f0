// SPDX-License-Identifier: BSD-2-Clause
// Watching, confirming and ending; what the reading thread does is in userfaultfd_reader.cpp.
#include "vm/userfaultfd.hpp"

#include "sys/error.hpp"
#include "vm/placement.hpp"
#include "vm/userfaultfd_open.hpp"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>

namespace regcache {
namespace {

void unregister(int uffd, Range range) noexcept
{
    uffdio_range pages{range.begin, range.size()};
    // Fails where nothing is mapped any more: then nothing is left to unregister.
    ioctl(uffd, UFFDIO_UNREGISTER, &pages);
}

// The reading thread needs a core; on a busy machine yielding alone may not give it one.
constexpr unsigned kYields = 64;
void pause(unsigned turn) noexcept
{
    if (turn < kYields) {
        sched_yield();
    } else {
        const timespec rest{0, 50'000};
        nanosleep(&rest, nullptr);
    }
}

} // namespace

Userfaultfd::Userfaultfd(bool watches_shared)
    : watches_shared_(watches_shared), uffd_(open_userfaultfd()), stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
{
    if (!stop_)
        throw Error(errno, std::string("no eventfd for the userfaultfd source: ") + std::strerror(errno));
    if (!mappings_.works())
        throw Error(ENOENT, "/proc/self/maps can't be read, so private and shared memory can't be told apart: mount /proc");
    // An empty range: never valid, and the kernel looks at its count of changes before it looks at the range.
    uffdio_writeprotect question{};
    if (ioctl(uffd_.number(), UFFDIO_WRITEPROTECT, &question) == 0 || (errno != EINVAL && errno != EAGAIN))
        throw Error(ENOSYS, "userfaultfd of this kernel doesn't tell of changes in flight: Linux 5.7 or newer is needed");
    reader_.start("regcache-events", [](void *self) { static_cast<Userfaultfd *>(self)->read_events(); }, this);
    let_run_near_process(reader_.id());
    add_fork_listener(*this);
}

Userfaultfd::~Userfaultfd()
{
    remove_fork_listener(*this);
    stop();
}

void Userfaultfd::stop() noexcept
{
    if (is_off_.load_relaxed())
        return;
    is_off_.store_relaxed(true);
    {
        const LockGuard guard(mutex_);
        // A forked child that keeps the descriptor would block whoever unmaps what is still registered.
        tidy_moved();
        unregister_everything();
    }
    stop_reader();
    uffd_.close();
}

void Userfaultfd::stop_reader() noexcept
{
    const std::uint64_t one = 1;
    while (::write(stop_.number(), &one, sizeof one) < 0 && errno == EINTR) {
    }
    reader_.join();
}

Watch Userfaultfd::watch(WatchedRange &watched) noexcept
{
    if (is_off_.load_relaxed())
        return Watch::NoEvents;
    const LockGuard guard(mutex_);
    tidy_moved();
    // Watch first, then look what it is: had it been looked at before, a change in between would go unseen.
    Watch answer = register_pages(watched);
    if (answer != Watch::Watched)
        return answer;
    answer = judge(watched.range);
    if (answer == Watch::Watched)
        watched_.insert(watched);
    else
        unregister_unwatched(watched.range);
    return answer;
}

void Userfaultfd::unwatch(WatchedRange &watched) noexcept
{
    if (is_off_.load_relaxed())
        return;
    const LockGuard guard(mutex_);
    tidy_moved();
    watched_.erase(watched);
    unregister_unwatched(watched.range);
}

// Registers also what is watched already: the old mapping may have gone, and a new one at its place isn't registered.
Watch Userfaultfd::register_pages(WatchedRange &watched) noexcept
{
    for (;;) {
        uffdio_register wish{};
        wish.range = {watched.range.begin, watched.range.size()};
        wish.mode = UFFDIO_REGISTER_MODE_WP;
        if (ioctl(uffd_.number(), UFFDIO_REGISTER, &wish) == 0)
            return Watch::Watched;
        const int error = errno;
        if (error == ENOMEM)
            return Watch::TooMany;
        if (error != EINVAL)
            return Watch::Refused;
        // A part of a huge page can't be watched, the whole of it can.
        Mapping mapping;
        if (!mappings_.find(watched.range.begin, mapping) || !mapping.range.contains(watched.range))
            return Watch::NotMapped;
        const Range widened = whole_pages(watched.range, mapping.page_bytes ? mapping.page_bytes : page_size());
        if (mapping.page_bytes == 0 || widened == watched.range)
            return mapping.is_shared || mapping.is_file ? Watch::SharedKind : Watch::Refused;
        watched.range = widened;
    }
}

Watch Userfaultfd::judge(Range range) const noexcept
{
    while (!range.is_empty()) {
        Mapping mapping;
        if (!mappings_.find(range.begin, mapping))
            return Watch::NotMapped;
        // Files count as shared even when they are mapped privately: truncation takes the pages without an event.
        if ((mapping.is_shared || mapping.is_file) && !watches_shared_)
            return Watch::SharedKind;
        range.begin = mapping.range.end;
    }
    return Watch::Watched;
}

// Regions share pages: what another one still watches must not be silenced.
void Userfaultfd::unregister_unwatched(Range range) noexcept
{
    std::uintptr_t done = range.begin;
    watched_.each_overlap(range, [&](const WatchedRange &other) {
        if (other.range.begin > done)
            unregister(uffd_.number(), {done, other.range.begin});
        if (other.range.end > done)
            done = other.range.end;
    });
    if (done < range.end)
        unregister(uffd_.number(), {done, range.end});
}

// Moved pages stay registered at the place where they arrived, which nobody watches.
void Userfaultfd::tidy_moved() noexcept
{
    for (;;) {
        Event event;
        switch (queue().next(moved_, event)) {
        case EventQueue::Next::Empty:
            return;
        case EventQueue::Next::Lost:
            // What arrived meanwhile stays registered until the end: its changes are told and concern nobody.
            break;
        case EventQueue::Next::One:
            if (event.change == Change::Arrived)
                unregister_unwatched(event.range);
        }
    }
}

void Userfaultfd::unregister_everything() noexcept
{
    while (WatchedRange *watched = watched_.any_overlap(Range::everything())) {
        watched_.erase(*watched);
        unregister(uffd_.number(), watched->range);
    }
}

bool Userfaultfd::is_quiet() const noexcept
{
    uffdio_writeprotect question{};
    const bool is_changing = ioctl(uffd_.number(), UFFDIO_WRITEPROTECT, &question) != 0 && errno == EAGAIN;
    fence_acquire();
    return !is_changing;
}

std::uint64_t Userfaultfd::position() noexcept
{
    while (!wait_until_quiet(UINT_MAX)) {
    }
    return read_word();
}

bool Userfaultfd::try_position(std::uint64_t &position) noexcept
{
    constexpr unsigned kTurns = kYields + 20;
    if (!wait_until_quiet(kTurns))
        return false;
    position = read_word();
    return true;
}

bool Userfaultfd::wait_until_quiet(unsigned most_turns) noexcept
{
    if (is_off_.load_relaxed() || is_quiet())
        return true;
    waits_.add_relaxed(1);
    for (unsigned turn = 0; turn < most_turns; ++turn) {
        pause(turn);
        if (is_quiet())
            return true;
    }
    return false;
}

// What had been read when the count was 0 is in the queue once the word isn't the same odd one any more, even if the next
// events are being read by then.
std::uint64_t Userfaultfd::read_word() noexcept
{
    if (is_off_.load_relaxed())
        return 0;
    const std::uint64_t word = word_.load_acquire(); // [word]
    if (word % 2 == 0)
        return word;
    waits_.add_relaxed(1);
    for (unsigned turn = 0;; ++turn) {
        pause(turn);
        const std::uint64_t later = word_.load_acquire(); // [word]
        if (later != word)
            return later - later % 2;
    }
}

void Userfaultfd::before_fork() noexcept
{
    mutex_.lock();
}

void Userfaultfd::after_fork_in_parent() noexcept
{
    mutex_.unlock();
}

// The child's memory isn't registered, but its descriptors would keep the parent's userfaultfd alive.
void Userfaultfd::after_fork_in_child() noexcept
{
    is_off_.store_relaxed(true);
    reader_.forget();
    uffd_.close();
    stop_.close();
    mappings_.close();
    mutex_.unlock();
}

} // namespace regcache
