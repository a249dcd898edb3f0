// SPDX-License-Identifier: BSD-2-Clause
// How the userfaultfd source begins, waits, forks and ends (vm/userfaultfd.cpp), and what it leaves behind: nothing.
#include "prov/refusals.hpp"
#include "support/child.hpp"
#include "support/eventually.hpp"
#include "support/memory.hpp"
#include "support/real_sources.hpp"
#include "support/watchdog.hpp"
#include "support/watching.hpp"

#include <dirent.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <criterion/criterion.h>

using namespace regcache;
using namespace regcache::test;
using Memory = regcache::test::Mapping;

namespace {

void need_userfaultfd()
{
    userfaultfd_or_skip();
}

// Open descriptors of userfaultfds. Allocates little, for children.
unsigned count_userfaultfds()
{
    unsigned count = 0;
    DIR *const folder = opendir("/proc/self/fd");
    if (!folder)
        return 1000;
    while (const dirent *entry = readdir(folder)) {
        char target[64] = "";
        if (readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1) > 0)
            count += std::strstr(target, "[userfaultfd]") != nullptr;
    }
    closedir(folder);
    return count;
}

std::string error_of_start()
{
    try {
        const Userfaultfd source(false);
        return "";
    } catch (const Error &error) {
        return error.what();
    }
}

std::string error_when_refused(int call, std::uint32_t command, int error)
{
    std::string what = "no seccomp filter can be set";
    on_own_thread([&] {
        if (refuse(call, command, error))
            what = error_of_start();
    });
    return what;
}

bool has(const std::string &text, const char *words)
{
    if (text.find(words) == std::string::npos)
        std::printf("\"%s\" isn't in \"%s\"\n", words, text.c_str());
    return text.find(words) != std::string::npos;
}

constexpr char kForks[] = "a child of a process with threads may hang in its allocator";

} // namespace

TestSuite(userfaultfd_life, .init = need_userfaultfd);

Test(userfaultfd_life, no_descriptor_and_no_thread_is_left_after_the_end)
{
    const Base before = measure_base();
    for (int i = 0; i < 20; ++i) {
        Userfaultfd source(false);
        const Memory memory(Kind::Private, page_size());
        const Watching watching(source, part_of(memory.data(), 0, 1));
        cr_expect(watching.works());
    }
    cr_expect(is_back_at_base(before));
    cr_expect(count_userfaultfds() == 0);
}

Test(userfaultfd_life, signals_of_the_application_never_run_on_its_thread)
{
    const Userfaultfd source(false);
    bool is_found = false;
    DIR *const tasks = opendir("/proc/self/task");
    cr_assert(tasks);
    while (const dirent *entry = readdir(tasks)) {
        std::ifstream status("/proc/self/task/" + std::string(entry->d_name) + "/status");
        bool is_it = false;
        for (std::string line; std::getline(status, line);) {
            if (line.rfind("Name:", 0) == 0)
                is_it = line.find("regcache-events") != std::string::npos;
            if (is_it && line.rfind("SigBlk:", 0) == 0) {
                is_found = true;
                // All but SIGKILL and SIGSTOP; libc keeps its own two.
                const std::uint64_t blocked = std::stoull(line.substr(7), nullptr, 16);
                constexpr std::uint64_t kNever = 1ull << 8 | 1ull << 18 | 3ull << 31;
                cr_expect((blocked | kNever) == ~std::uint64_t{0}, "%s", line.c_str());
            }
        }
    }
    closedir(tasks);
    cr_expect(is_found);
}

Test(userfaultfd_life, what_it_needs_is_named_when_it_is_not_there)
{
    const unsigned before = measure_base().descriptors;
    cr_expect(has(error_when_refused(SYS_eventfd2, kAnyCommand, EMFILE), "no eventfd"));
    if (getuid() == 0) // who may open only the device gets no further
        cr_expect(has(error_when_refused(SYS_openat, kAnyCommand, ENOENT), "mount /proc"));
    const auto writeprotect = static_cast<std::uint32_t>(UFFDIO_WRITEPROTECT);
    cr_expect(has(error_when_refused(SYS_ioctl, writeprotect, 0), "doesn't tell of changes in flight"));
    cr_expect(has(error_when_refused(SYS_ioctl, writeprotect, ENOTTY), "doesn't tell of changes in flight"));
    cr_expect(measure_base().descriptors == before);
}

Test(userfaultfd_life, thread_that_cannot_be_had_is_named)
{
    std::string what;
    on_own_thread([&] {
        // glibc tries both.
        if (refuse(SYS_clone3, kAnyCommand, EAGAIN) && refuse(SYS_clone, kAnyCommand, EAGAIN))
            what = error_of_start();
    });
    cr_expect(has(what, "can't start the thread regcache-events"));
    cr_expect(count_userfaultfds() == 0);
}

Test(userfaultfd_life, stopped_source_watches_nothing_and_blocks_nobody)
{
    const Watchdog watchdog("an unmapping after stop()");
    Userfaultfd source(false);
    Memory memory(Kind::Private, 4 * page_size());
    WatchedRange watched{part_of(memory.data(), 0, 4), {}};
    cr_assert(source.watch(watched) == Watch::Watched);
    source.stop();
    cr_expect(count_userfaultfds() == 0);
    memory.unmap();
    cr_expect(source.position() == 0);
    std::uint64_t position = 1;
    cr_expect(source.try_position(position) && position == 0);
    source.unwatch(watched);
    cr_expect(source.watch(watched) == Watch::NoEvents);
    source.stop();
}

// What a reader that doesn't get to run looks like: its reads fail. Nobody may wait for it who can do without.
Test(userfaultfd_life, stuck_change_makes_nobody_wait_who_can_do_without)
{
    const Watchdog watchdog("try_position() beside a stuck change");
    std::thread([] {
        if (!refuse(SYS_read, kAnyCommand, EAGAIN))
            return;
        Memory memory(Kind::Private, page_size());
        std::unique_ptr<std::thread> changer;
        {
            Userfaultfd source(false); // its reading thread is refused too
            WatchedRange watched{part_of(memory.data(), 0, 1), {}};
            cr_expect(source.watch(watched) == Watch::Watched);
            std::uint64_t position = 1;
            cr_expect(source.try_position(position) && source.is_quiet());
            const std::uint64_t waits = source.confirm_waits();
            changer = std::make_unique<std::thread>([&] { madvise(memory.data(), page_size(), MADV_DONTNEED); });
            cr_expect(eventually([&] { return !source.is_quiet(); }));
            cr_expect(!source.try_position(position));
            cr_expect(source.confirm_waits() == waits + 1);
            source.stop(); // lets the changer go
        }
        changer->join();
    }).join();
}

Test(userfaultfd_life, forked_child_watches_nothing_and_holds_nothing)
{
    skip_under_sanitizer(kForks);
    Userfaultfd source(false);
    Memory memory(Kind::Private, 4 * page_size());
    WatchedRange watched{part_of(memory.data(), 0, 4), {}};
    cr_assert(source.watch(watched) == Watch::Watched);
    const int status = status_of_child([&] {
        if (count_userfaultfds() != 0)
            return 1;
        WatchedRange own{part_of(memory.data(), 0, 2), {}};
        if (source.watch(own) != Watch::NoEvents || source.position() != 0)
            return 2;
        source.unwatch(watched);
        source.stop();
        return munmap(memory.data(), memory.size()) == 0 ? 0 : 3;
    });
    cr_expect(status == 0, "status %d", status);
    Told told(source);
    memory.unmap();
    cr_expect(told.tells_of(watched.range)); // the parent's goes on
    source.unwatch(watched);
}

Test(userfaultfd_life, child_that_never_execs_does_not_block_its_parent)
{
    skip_under_sanitizer(kForks);
    const Watchdog watchdog("an unmapping beside an idle child");
    Memory first(Kind::Private, 4 * page_size()), second(Kind::Private, 4 * page_size());
    {
        Userfaultfd source(false);
        const Watching one(source, part_of(first.data(), 0, 4)), two(source, part_of(second.data(), 0, 4));
        cr_assert(one.works() && two.works());
        const IdleChild child;
        Told told(source);
        first.unmap(); // while the source is open
        cr_expect(told.has_moved());
        cr_expect(child.is_there());
    }
    std::unique_ptr<IdleChild> child;
    {
        Userfaultfd source(false);
        WatchedRange watched{part_of(second.data(), 0, 4), {}};
        cr_assert(source.watch(watched) == Watch::Watched);
        child = std::make_unique<IdleChild>();
    } // ended with the range still watched
    second.unmap();
    cr_expect(child->is_there());
}

Test(userfaultfd_life, forks_beside_watching_threads_find_no_lock_held)
{
    skip_under_sanitizer(kForks);
    Userfaultfd source(false);
    std::atomic<bool> is_over{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
        threads.emplace_back([&] {
            while (!is_over) {
                Memory memory(Kind::Private, 2 * page_size());
                const Watching watching(source, part_of(memory.data(), 0, 2));
                memory.unmap();
            }
        });
    int bad = 0;
    for (int round = 0; round < 50 && bad == 0; ++round)
        bad = status_of_child([&] {
            WatchedRange own{{0x1000, 0x2000}, {}};
            return source.watch(own) == Watch::NoEvents && source.position() == 0 ? 0 : 1;
        });
    is_over = true;
    for (std::thread &thread : threads)
        thread.join();
    cr_expect(bad == 0, "status %d", bad);
}

Test(userfaultfd_life, child_may_have_a_source_of_its_own)
{
    skip_under_sanitizer(kForks);
    const Userfaultfd source(false);
    const int status = status_of_child([] {
        Userfaultfd own(false);
        Memory memory(Kind::Private, page_size());
        const Watching watching(own, part_of(memory.data(), 0, 1));
        Told told(own);
        memory.unmap();
        return watching.works() && told.has_moved() ? 0 : 1;
    });
    cr_expect(status == 0, "status %d", status);
}
