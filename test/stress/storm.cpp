// SPDX-License-Identifier: BSD-2-Clause
// What does heavy traffic in the address space do to a cache that isn't concerned, that is idle, or that is asked all the
// time? Nothing that was registered is lost without a reason, nothing piles up, what was freed is unpinned with no call of
// ours, and a request ends although changes never do.
#include "stress/counting_lower.hpp"
#include "stress/pinning_lower.hpp"
#include "support/watchdog.hpp"

#include "cache/cache.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <vector>

using namespace regcache;
using namespace regcache::test;

namespace {

char *map(std::size_t bytes)
{
    void *const got = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) {
        std::perror("mmap");
        std::exit(1);
    }
    return static_cast<char *>(got);
}

Region *acquire(Cache &cache, const void *start, std::size_t bytes, Failures &failures)
{
    Region *region = nullptr;
    if (const int error = cache.acquire(start, bytes, 1, Match::Anywhere, &region); error != 0) {
        failures.add("acquire of %zu bytes fails with %d", bytes, error);
        std::exit(1);
    }
    return region;
}

// The registration that serves a request now.
const void *registered_at(Cache &cache, const void *start, std::size_t bytes, Failures &failures)
{
    Region *const region = acquire(cache, start, bytes, failures);
    const void *const registration = region->registration;
    cache.release(region);
    return registration;
}

CacheOptions named(const char *name)
{
    CacheOptions options;
    options.name = name;
    return options;
}

// Waits until `is_so`, which comes by itself unless something is wrong.
template <class Question>
bool comes(Question is_so)
{
    const Until limit(60'000 * patience());
    while (!is_so()) {
        if (limit.is_over())
            return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
}

// A registration that lives long, between pages of the same mapping that others register and unmap.
void unrelated(const std::shared_ptr<Source> &source, const Options &options, Failures &failures)
{
    constexpr std::size_t kThreads = 4;
    const std::size_t page = regcache::page_size();
    const std::size_t part = 64 * page;
    char *const memory = map((2 * kThreads + 1) * part);
    char *const lasting = memory + kThreads * part;
    CountingLower lower(failures);
    Cache quiet(named("lasting"), source, lower);
    Cache busy(named("busy"), source, lower);
    const void *const first = registered_at(quiet, lasting, part, failures);
    std::atomic<std::uint64_t> changes{0};
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kThreads; ++i)
        threads.emplace_back([&, i] {
            Random random(options.seed + i);
            const Until until(options.is_long ? 30'000 : 500);
            // Its own parts of the mapping, before and behind what lasts.
            char *const parts[2] = {memory + i * part, memory + (kThreads + 1 + i) * part};
            while (!until.is_over()) {
                char *const mine = parts[below(random, 2)];
                if (one_in(random, 2))
                    busy.release(acquire(busy, mine + below(random, 32) * page, 32 * page, failures));
                if (one_in(random, 64)) // each holds what it touches for a while
                    madvise(mine, part, MADV_DONTNEED);
                else
                    mmap(mine, part, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
                char *const other = map(page);
                *other = 1;
                munmap(other, page);
                changes.fetch_add(2);
            }
        });
    std::uint64_t asked = 1;
    const Until until(options.is_long ? 30'000 : 500);
    while (!until.is_over()) {
        quiet.release(acquire(quiet, lasting, part, failures));
        ++asked;
    }
    for (std::thread &thread : threads)
        thread.join();
    const StatisticsSnapshot seen = quiet.statistics();
    if (seen.lost == 0) {
        const void *const last = registered_at(quiet, lasting, part, failures);
        failures.unless(seen.invalidations == 0, "%llu invalidations of memory that never changed",
                        static_cast<unsigned long long>(seen.invalidations));
        failures.unless(seen.hits + seen.unconfirmed + 1 >= asked, "%llu requests, %llu hits, %llu not confirmed",
                        static_cast<unsigned long long>(asked), static_cast<unsigned long long>(seen.hits),
                        static_cast<unsigned long long>(seen.unconfirmed));
        failures.unless(last == first || seen.unconfirmed != 0, "what lasts was registered again");
    }
    std::printf("unrelated: %llu changes, %llu events, %llu lost; %llu requests, %llu hits, %llu not confirmed\n",
                static_cast<unsigned long long>(changes.load()), static_cast<unsigned long long>(seen.events),
                static_cast<unsigned long long>(seen.lost), static_cast<unsigned long long>(asked),
                static_cast<unsigned long long>(seen.hits), static_cast<unsigned long long>(seen.unconfirmed));
    munmap(memory, (2 * kThreads + 1) * part);
}

// Changes of watched memory while nobody calls the cache.
void idle(const std::shared_ptr<Source> &source, const Options &options, Failures &failures)
{
    const std::size_t page = regcache::page_size();
    const std::size_t count = options.is_long ? 250'000 : 25'000;
    CountingLower lower(failures);
    Cache cache(named("idle"), source, lower);
    const Base before = measure_base();
    {
        // A registration in use stays watched, whatever happens to its pages.
        char *const memory = map(count * page);
        Region *const held = acquire(cache, memory, count * page, failures);
        for (std::size_t i = 0; i < count; ++i)
            madvise(memory + i % 16 * page, page, MADV_DONTNEED);
        for (std::size_t i = 0; i < count; ++i)
            munmap(memory + i * page, page);
        failures.unless(lower.live() == 1, "%ld registrations, and one handle", lower.live());
        cache.release(held);
        failures.unless(lower.live() == 0, "%ld registrations after the last handle", lower.live());
    }
    for (std::size_t i = 0; i < 2 * count; ++i)
        munmap(map(page), page);
    for (int round = 0; round < (options.is_long ? 200 : 20); ++round) {
        // Many registrations that nobody uses: they go by themselves.
        constexpr std::size_t kRegions = 100;
        char *const memory = map(kRegions * page);
        for (std::size_t i = 0; i < kRegions; ++i)
            cache.release(acquire(cache, memory + i * page, page, failures));
        munmap(memory, kRegions * page);
    }
    failures.unless(comes([&] { return lower.live() == 0; }), "%ld registrations of freed memory stay", lower.live());
    failures.unless(cache.statistics().pinned_bytes == 0, "%llu bytes are counted as pinned",
                    static_cast<unsigned long long>(cache.statistics().pinned_bytes));
    const Base after = measure_base();
    if (!sanitizer())
        failures.unless(after.resident_kib < before.resident_kib + 32 * 1024, "memory grew: %s; then %s",
                        text_of(before).c_str(), text_of(after).c_str());
    const StatisticsSnapshot seen = cache.statistics();
    std::printf("idle: %llu events, %llu lost, %llu invalidated; %s\n", static_cast<unsigned long long>(seen.events),
                static_cast<unsigned long long>(seen.lost), static_cast<unsigned long long>(seen.invalidations),
                text_of(after).c_str());
}

// Large buffers that are registered, closed and freed: nothing else unpins them.
void unpinned(const std::shared_ptr<Source> &source, const Options &options, Failures &failures)
{
    const std::size_t bytes = std::size_t{64} << 20;
    const int rounds = options.is_long ? 1000 : 30;
    PinningLower lower(failures);
    Cache cache(named("unpinned"), source, lower);
    const std::size_t before = measure_base().pinned_kib;
    std::size_t most = before;
    for (int round = 0; round < rounds; ++round) {
        // The allocator of a sanitizer keeps what is freed.
        const bool is_mapped = sanitizer() || round % 2 == 0;
        auto *const memory = is_mapped ? map(bytes) : static_cast<char *>(std::malloc(bytes));
        Region *region = nullptr;
        const int error = cache.acquire(memory, bytes, 1, Match::Anywhere, &region);
        if (error == -ENOMEM) {
            std::printf("unpinned: no 64 MiB can be pinned here (ulimit -l): left out\n");
            return;
        }
        failures.unless(error == 0, "acquire fails with %d", error);
        most = std::max(most, measure_base().pinned_kib);
        cache.release(region);
        if (is_mapped)
            munmap(memory, bytes);
        else
            std::free(memory);
        if (round % 4 == 3)
            failures.unless(is_pinned_back_at(before), "freed memory stays pinned after round %d", round);
    }
    failures.unless(is_pinned_back_at(before), "freed memory stays pinned");
    std::printf("unpinned: %d buffers of 64 MiB, at most %zu MiB pinned at once, none now\n", rounds, (most - before) / 1024);
}

// Threads change watched memory without a pause, so that there is always a change on its way.
void never_quiet(const std::shared_ptr<Source> &source, const Options &options, Failures &failures)
{
    constexpr std::size_t kThreads = 8;
    const std::size_t page = regcache::page_size();
    CountingLower lower(failures);
    Cache cache(named("never quiet"), source, lower);
    std::atomic<bool> is_over{false};
    std::atomic<unsigned> ready{0};
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kThreads; ++i)
        threads.emplace_back([&] {
            char *const memory = map(page);
            Region *const held = acquire(cache, memory, page, failures);
            ready.fetch_add(1);
            while (!is_over.load())
                madvise(memory, page, MADV_DONTNEED);
            cache.release(held);
            munmap(memory, page);
        });
    while (ready.load() != kThreads)
        sched_yield();
    char *const memory = map(page);
    *memory = 1;
    const int requests = options.is_long ? 1000 : 50;
    for (int i = 0; i < requests; ++i)
        cache.release(acquire(cache, memory, page, failures));
    is_over.store(true);
    for (std::thread &thread : threads)
        thread.join();
    munmap(memory, page);
    const StatisticsSnapshot seen = cache.statistics();
    std::printf("never quiet: %d requests ended, %llu of them not confirmed; %llu events\n", requests,
                static_cast<unsigned long long>(seen.unconfirmed), static_cast<unsigned long long>(seen.events));
}

} // namespace

int main(int argc, char **argv)
{
    const Options options = read_options("storm", argc, argv);
    PinningLower::probe_or_skip();
    const Watchdog watchdog("storm", kLimitS / patience());
    Failures failures;
    const std::shared_ptr<Source> source = userfaultfd_or_skip();
    unrelated(source, options, failures);
    idle(source, options, failures);
    unpinned(source, options, failures);
    never_quiet(source, options, failures);
    return failures.status();
}
