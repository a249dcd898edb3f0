// SPDX-License-Identifier: BSD-2-Clause
// The event source of every stock kernel since 5.7: a userfaultfd that is asked for mapping events and write-protects
// nothing, so that no page fault ever comes to it.
#pragma once

#include "index/interval_tree.hpp"
#include "sys/fd.hpp"
#include "sys/fork.hpp"
#include "sys/lock.hpp"
#include "sys/thread.hpp"
#include "vm/mapping.hpp"
#include "vm/source.hpp"

#include <string>

namespace regcache {

// A thread that unmaps watched memory is blocked by the kernel until its event was read: the thread that reads events
// therefore takes no lock, allocates nothing, and first of all reads.
//
// position() is one word, which only the reading thread writes:
//
//        even: everything read is in the queue  --about to read-->  odd
//        odd: events may have been read that    --pushed-------->   even, and larger
//             are not in the queue yet
//
// An event reaches the kernel's queue late: after munmap has given the address up. What tells of it in time is the
// kernel's count of changes in flight, which confirm() looks at: UFFDIO_WRITEPROTECT fails with EAGAIN while there are any
// (fs/userfaultfd.c, mmap_changing). position() looks at the count first and at the word second: a change that was
// counted no more has been read, and so has made the word odd. The count may not become 0 for as long as threads make one
// change after the other; once it was, only the reading thread is waited for.
class Userfaultfd final : public Source, private ForkListener {
public:
    // Throws Error with the reason.
    explicit Userfaultfd(bool watches_shared);
    // No range may be watched any more.
    ~Userfaultfd() override;

    const char *name() const noexcept override { return "userfaultfd"; }
    void stop() noexcept override;
    Watch watch(WatchedRange &watched) noexcept override;
    void unwatch(WatchedRange &watched) noexcept override;
    std::uint64_t position() noexcept override;
    bool try_position(std::uint64_t &position) noexcept override;
    std::uint64_t confirm_waits() const noexcept override { return waits_.load_relaxed(); }

    // True when no change is in flight in the kernel. One system call, 0.3 us.
    bool is_quiet() const noexcept;

private:
    bool wait_until_quiet(unsigned most_turns) noexcept;
    std::uint64_t read_word() noexcept;
    Watch register_pages(WatchedRange &watched) noexcept REGCACHE_REQUIRES(mutex_);
    Watch judge(Range range) const noexcept;
    void unregister_unwatched(Range range) noexcept REGCACHE_REQUIRES(mutex_);
    void tidy_moved() noexcept REGCACHE_REQUIRES(mutex_);
    void unregister_everything() noexcept REGCACHE_REQUIRES(mutex_);
    void read_events() noexcept;
    void stop_reader() noexcept;

    void before_fork() noexcept override REGCACHE_UNCHECKED;
    void after_fork_in_parent() noexcept override REGCACHE_UNCHECKED;
    void after_fork_in_child() noexcept override REGCACHE_UNCHECKED;

    const bool watches_shared_;
    Fd uffd_;
    Fd stop_; // an eventfd
    MappingReader mappings_;
    Atomic<std::uint64_t> word_{std::uint64_t{0}}; // [word]
    Atomic<std::uint64_t> waits_{std::uint64_t{0}};
    Atomic<bool> is_off_{false}; // in a forked child, or after stop()

    Mutex mutex_{Rank::Watches};
    IntervalTree<WatchedRange> watched_ REGCACHE_GUARDED_BY(mutex_);
    EventQueue::Cursor moved_ REGCACHE_GUARDED_BY(mutex_) = 0; // up to here, where moved pages arrived was looked at
    Thread reader_;
};

} // namespace regcache
