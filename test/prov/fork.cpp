// SPDX-License-Identifier: BSD-2-Clause
// Programs that fork while memory is registered: the parent goes on, the child does as it likes and harms nobody.
#include "prov/changes.hpp"
#include "prov/over_pin.hpp"
#include "support/child.hpp"
#include "support/watchdog.hpp"

#include <dirent.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <criterion/criterion.h>

using namespace regcache::test;

namespace {

// A child of a process with threads has only what is safe there: it ends by _exit.
constexpr char kWhy[] = "its allocator doesn't survive a fork of a process with threads";

// Ends with the child's exit status, -1 if it was killed.
int status_of(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// A child beside which the parent goes on.
template <class Body>
pid_t in_child(Body body)
{
    const pid_t child = fork();
    if (child == 0) {
        alarm(100 * patience()); // whatever happens
        _exit(body());
    }
    return child;
}

// Both ends of two pipes: parent and child wait for each other.
class Turns {
public:
    Turns() { cr_assert(pipe(to_child_) == 0 && pipe(to_parent_) == 0); }
    ~Turns()
    {
        for (const int end : {to_child_[0], to_child_[1], to_parent_[0], to_parent_[1]})
            close(end);
    }
    void wake_child() const { give(to_child_[1]); }
    void wake_parent() const { give(to_parent_[1]); }
    void wait_in_child() const { take(to_child_[0]); }
    void wait_in_parent() const { take(to_parent_[0]); }

private:
    static void give(int end)
    {
        while (write(end, "x", 1) < 0 && errno == EINTR) {
        }
    }
    static void take(int end)
    {
        char byte;
        while (read(end, &byte, 1) < 0 && errno == EINTR) {
        }
    }
    int to_child_[2], to_parent_[2];
};

bool has_descriptor_of(const char *what)
{
    bool is_there = false;
    DIR *const folder = opendir("/proc/self/fd");
    while (const dirent *entry = folder ? readdir(folder) : nullptr) {
        char target[256] = "";
        if (readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1) > 0)
            is_there = is_there || std::strstr(target, what);
    }
    if (folder)
        closedir(folder);
    return is_there;
}

void begin()
{
    skip_under_sanitizer(kWhy);
    need_pin();
}

} // namespace

TestSuite(fork, .init = begin);

// Register, close (the registration stays), fork, both write: the card is the parent's.
Test(fork, leaves_the_parent_s_pages_with_the_parent)
{
    const Watchdog watchdog("both write after a fork");
    Card card(over_pin());
    const Mapping memory(Kind::Private, 8 * page_size());
    memory.fill('A');
    cr_expect(card.reg(memory.data(), memory.size()));
    const Region open = card.reg(memory.data(), page_size());
    const Turns turns;
    const pid_t child = in_child([&] {
        turns.wait_in_child();
        const bool is_inherited = memory.data()[0] == 'A' && memory.data()[7 * page_size()] == 'A';
        memory.fill('C');
        turns.wake_parent();
        turns.wait_in_child();
        return is_inherited && memory.data()[0] == 'C' ? 0 : 1;
    });
    memory.fill('P');
    turns.wake_child();
    turns.wait_in_parent();
    const std::uint64_t before = registered();
    const Region again = card.reg(memory.data(), memory.size());
    cr_expect(registered() == before, "the parent's cache goes on");
    for (std::size_t page = 0; page < 8; ++page) {
        cr_expect(memory.data()[page * page_size()] == 'P');
        cr_expect(seen(again, memory.data() + page * page_size()) == 'P', "page %zu", page);
    }
    cr_expect(pin->write(fi_mr_desc(open.get()), memory.data(), "W", 1) == 1);
    cr_expect(memory.data()[0] == 'W', "what the card writes is the parent's");
    turns.wake_child();
    cr_expect(status_of(child) == 0);
    cr_expect(pin_count().calls_in_child == 0);
}

// A child that never execs keeps what it inherited; the parent closes everything and unmaps.
Test(fork, without_exec_blocks_nobody)
{
    const Watchdog watchdog("the parent unmaps beside its child");
    for (const bool closes_first : {true, false}) {
        Card card(over_pin());
        std::vector<Mapping> memory;
        for (int i = 0; i < 20; ++i) {
            memory.emplace_back(Kind::Private, 2 * page_size());
            cr_expect(card.reg(memory.back().data(), memory.back().size()));
        }
        const Turns turns;
        const pid_t child = in_child([&] {
            turns.wait_in_child();
            return has_descriptor_of("userfaultfd") ? 1 : 0;
        });
        if (closes_first)
            cr_expect(card.close() == 0);
        memory.clear();
        cr_expect(card.close() == 0);
        turns.wake_child();
        cr_expect(status_of(child) == 0, "the child holds the parent's userfaultfd");
    }
    expect_pin_is_empty();
}

// What the child does with what it inherited, and with what it opens itself.
Test(fork, leaves_the_child_with_a_cache_that_is_off)
{
    const Watchdog watchdog("the child uses the domain");
    Card card(over("tcp")); // which lets a child register
    const Mapping memory = replaceable(Kind::Private, 4 * page_size());
    memory.fill('A');
    fid_mr *inherited = nullptr;
    cr_assert(fi_mr_reg(card.domain(), memory.data(), page_size(), FI_SEND, 0, 0, 0, &inherited, nullptr) == 0);
    const int status = status_of_child([&] {
        for (int i = 0; i < 50; ++i) {
            fid_mr *own = nullptr;
            if (fi_mr_reg(card.domain(), memory.data(), memory.size(), FI_SEND, 0, 0, 0, &own, nullptr) != 0)
                return 1;
            if (!replace_by_unmapping(memory.data() + page_size(), page_size()))
                return 2;
            if (fi_close(&own->fid) != 0)
                return 3;
        }
        if (fi_close(&inherited->fid) != 0)
            return 4;
        void *const block = std::malloc(1 << 20);
        std::memset(block, 1, 1 << 20);
        std::free(block);
        return 0;
    });
    cr_expect(status == 0, "status %d", status);
    cr_expect(fi_close(&inherited->fid) == 0, "it is the parent's still");
    cr_expect(card.reg(memory.data(), memory.size()));
    cr_expect(card.close() == 0);
}

Test(fork, lets_the_child_open_a_domain_of_its_own)
{
    const Watchdog watchdog("a domain in the child");
    Card card(over("tcp"));
    const Mapping memory = replaceable(Kind::Private, 4 * page_size());
    cr_expect(card.reg(memory.data(), memory.size()));
    const int status = status_of_child([&] {
        try {
            Card own(over("tcp"));
            for (int i = 0; i < 20; ++i) {
                if (!own.reg(memory.data(), memory.size()) || !own.reg(memory.data(), page_size()))
                    return 1;
                if (!replace_by_unmapping(memory.data(), page_size()))
                    return 2;
            }
            return own.close() == 0 ? 0 : 3;
        } catch (const std::exception &error) {
            std::fprintf(stderr, "in the child: %s\n", error.what());
            return 4;
        }
    });
    cr_expect(status == 0, "status %d", status);
    cr_expect(card.reg(memory.data(), memory.size()));
}

// While other threads register, unmap and close: no lock is left behind in the child.
Test(fork, beside_threads_that_register)
{
    const Watchdog watchdog("forks beside threads");
    Card card(over_pin());
    std::atomic<bool> is_over{false};
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
        threads.emplace_back([&] {
            while (!is_over.load()) {
                const Mapping memory(Kind::Private, 4 * page_size());
                memory.fill('T');
                const Region region = card.reg(memory.data(), memory.size());
                wrong += !region || seen(region, memory.data()) != 'T';
            }
        });
    for (int round = 0; round < 100; ++round) {
        const int status = status_of_child([] {
            void *const block = std::malloc(1 << 20);
            std::memset(block, 1, 1 << 20);
            std::free(block);
            const Mapping memory(Kind::Private, page_size());
            memory.fill('C');
            return memory.data()[0] == 'C' ? 0 : 1;
        });
        wrong += status != 0;
    }
    is_over = true;
    for (std::thread &thread : threads)
        thread.join();
    cr_expect(wrong == 0, "%d times wrong", wrong.load());
    cr_expect(card.close() == 0);
    expect_pin_is_empty();
}

Test(fork, and_exec_beside_threads_that_register)
{
    const Watchdog watchdog("system() beside threads");
    Card card(over_pin());
    std::atomic<bool> is_over{false};
    std::thread thread([&] {
        while (!is_over.load()) {
            const Mapping memory(Kind::Private, 4 * page_size());
            const Region region = card.reg(memory.data(), memory.size());
        }
    });
    for (int round = 0; round < 30; ++round)
        cr_expect(std::system("true") == 0);
    // Nothing of ours is inherited across exec.
    cr_expect(std::system("ls -l /proc/self/fd | grep -q userfaultfd") != 0);
    for (int round = 0; round < 10; ++round) {
        const int status = status_of_child([] {
            execl("/bin/true", "true", nullptr);
            return 1;
        });
        cr_expect(status == 0, "status %d", status);
    }
    is_over = true;
    thread.join();
    cr_expect(card.close() == 0);
    expect_pin_is_empty();
}

// posix_spawn runs no handlers: the child shares the parent's memory until it execs.
Test(fork, by_posix_spawn_changes_nothing)
{
    const Watchdog watchdog("posix_spawn");
    Card card(over_pin());
    const Mapping memory(Kind::Private, page_size());
    memory.fill('A');
    cr_expect(card.reg(memory.data(), page_size()));
    for (int round = 0; round < 20; ++round) {
        pid_t child = -1;
        char name[] = "true";
        char *const arguments[] = {name, nullptr};
        cr_assert(posix_spawn(&child, "/bin/true", nullptr, nullptr, arguments, environ) == 0);
        cr_expect(status_of(child) == 0);
        cr_expect(seen(card.reg(memory.data(), page_size()), memory.data()) == 'A');
    }
    cr_expect(registered() == 1, "the cache goes on");
}
