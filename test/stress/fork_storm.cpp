// SPDX-License-Identifier: BSD-2-Clause
// Does a process survive that forks all the time while its threads use a cache? Each child allocates, unmaps, uses the
// cache that it inherited and makes one of its own, and some of them start a program. No child hangs, and the parent's cache
// goes on.
#include "stress/counting_lower.hpp"
#include "support/watchdog.hpp"

#include "cache/cache.hpp"
#include "vm/choice.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

using namespace regcache;
using namespace regcache::test;

namespace {

constexpr unsigned kThreads = 8;
constexpr std::size_t kBytes = std::size_t{256} << 10; // of each thread's buffer

void *map(std::size_t bytes)
{
    void *const got = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED) {
        std::perror("mmap");
        std::_Exit(1);
    }
    return got;
}

Region *acquire(Cache &cache, const void *start, std::size_t bytes)
{
    Region *region = nullptr;
    return cache.acquire(start, bytes, 1, Match::Anywhere, &region) == 0 ? region : nullptr;
}

// What a thread of the parent does until it is told to stop.
void work(Cache &cache, Failures &failures, std::uint64_t seed, const std::atomic<bool> &is_over)
{
    Random random(seed);
    void *buffer = map(kBytes);
    while (!is_over.load()) {
        Region *const region = acquire(cache, buffer, kBytes);
        if (!region) {
            failures.add("acquire fails beside a fork");
            return;
        }
        std::free(std::malloc(1 + below(random, 200'000)));
        cache.release(region);
        if (one_in(random, 16)) {
            munmap(buffer, kBytes);
            buffer = map(kBytes);
        }
    }
    munmap(buffer, kBytes);
}

// Exit status of a child in which everything is as it should be: kGood.
constexpr int kGood = 42;

int in_child(Cache &inherited, CountingLower &lower, Region *held, const void *buffer, Random &random)
{
    set_log_sink(nullptr);
    std::vector<void *> blocks;
    for (int i = 0; i < 50; ++i)
        blocks.push_back(std::malloc(1 + below(random, 300'000)));
    for (void *block : blocks)
        std::free(block);

    // The cache is off: each request registers anew, and is given back with its release.
    const long live = lower.live();
    Region *const first = acquire(inherited, buffer, kBytes);
    Region *const second = acquire(inherited, buffer, kBytes);
    if (!first || !second || first == second || lower.live() != live + 2)
        return 1;
    inherited.release(first);
    inherited.release(second);
    if (lower.live() != live)
        return 2;
    // What the parent has registered is the parent's.
    inherited.release(held);
    inherited.flush();
    if (lower.live() != live)
        return 3;

    void *const memory = map(kBytes);
    std::memset(memory, 1, kBytes);
    munmap(memory, kBytes);
    if (one_in(random, 4)) {
        // A new life: a source and a cache of the child's own.
        Failures failures;
        CountingLower own_lower(failures);
        Cache own({}, open_source("auto", {}), own_lower);
        void *const mine = map(kBytes);
        Region *const region = acquire(own, mine, kBytes);
        if (!region)
            return 4;
        own.release(region);
        munmap(mine, kBytes);
        Region *const again = acquire(own, mine, kBytes); // not mapped: registered by this lower all the same
        if (!again || own.statistics().hits != 0)
            return 5;
        own.release(again);
    }
    if (one_in(random, 4)) {
        execl("/bin/sh", "sh", "-c", "exit 42", nullptr);
        return 6;
    }
    return kGood;
}

// Waits for a child, which ends by itself unless something is wrong.
void wait_for(pid_t child, Failures &failures)
{
    const Until limit(60'000);
    for (;;) {
        int status = 0;
        const pid_t ended = waitpid(child, &status, WNOHANG);
        if (ended == child) {
            if (WIFSIGNALED(status))
                failures.add("a child ends by signal %d", WTERMSIG(status));
            else
                failures.unless(WEXITSTATUS(status) == kGood, "a child ends with %d", WEXITSTATUS(status));
            return;
        }
        if (ended < 0) {
            failures.add("waitpid: %s", std::strerror(errno));
            return;
        }
        if (limit.is_over()) {
            failures.add("a child hangs (process %d)", child);
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            return;
        }
        usleep(200);
    }
}

} // namespace

int main(int argc, char **argv)
{
    skip_program_under_sanitizer("its run time may leave its own locks held in a forked child");
    const Options options = read_options("fork_storm", argc, argv);
    const Watchdog watchdog("fork_storm", kLimitS);
    Failures failures;
    userfaultfd_or_skip();
    CountingLower lower(failures);
    const Base before = measure_base();
    {
        Cache cache(CacheOptions{.limits = {}, .ends_with_use = 0, .name = "fork storm"}, open_source("userfaultfd", {}), lower);
        std::atomic<bool> is_over{false};
        std::vector<std::thread> threads;
        for (unsigned i = 0; i < kThreads; ++i)
            threads.emplace_back([&, i] { work(cache, failures, options.seed + i, is_over); });

        Random random(options.seed + kThreads);
        void *const buffer = map(kBytes);
        const int forks = options.is_long ? 10'000 : 200;
        const Until until(options.is_long ? 200'000 : 10'000);
        int done = 0;
        for (; done < forks && !until.is_over(); ++done) {
            Region *const held = acquire(cache, buffer, kBytes);
            random.discard(1);
            const pid_t child = fork();
            if (child == 0)
                std::_Exit(in_child(cache, lower, held, buffer, random));
            if (child < 0) {
                failures.add("fork: %s", std::strerror(errno));
                cache.release(held);
                break;
            }
            cache.release(held);
            wait_for(child, failures);
            if (done % 8 == 0) {
                const int status = std::system("exit 42");
                failures.unless(WIFEXITED(status) && WEXITSTATUS(status) == kGood, "system() gives %d", status);
            }
        }

        is_over.store(true);
        for (std::thread &thread : threads)
            thread.join();
        // The parent's cache works on.
        cache.release(acquire(cache, buffer, kBytes));
        const std::uint64_t hits = cache.statistics().hits;
        cache.release(acquire(cache, buffer, kBytes));
        failures.unless(cache.statistics().hits == hits + 1, "no hit after the last fork");
        munmap(buffer, kBytes);
        Region *const after = acquire(cache, buffer, kBytes);
        failures.unless(cache.statistics().hits == hits + 1, "a hit on memory that is gone, after the last fork");
        cache.release(after);
        const StatisticsSnapshot seen = cache.statistics();
        std::printf("%d children; %llu requests, %llu hits, %llu invalidated\n", done,
                    static_cast<unsigned long long>(seen.asked), static_cast<unsigned long long>(seen.hits),
                    static_cast<unsigned long long>(seen.invalidations));
    }
    failures.unless(lower.live() == 0, "%ld registrations are left at the end", lower.live());
    failures.unless(is_back_at_base(before), "threads or descriptors are left");
    return failures.status();
}
