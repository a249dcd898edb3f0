// SPDX-License-Identifier: BSD-2-Clause
// Does anything wait for itself? The lower provider allocates, frees and unmaps watched memory in its calls, and takes a
// lock that other threads hold while they unmap and allocate. A watchdog tells.
#include "stress/counting_lower.hpp"
#include "support/watchdog.hpp"

#include "cache/cache.hpp"

#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

using namespace regcache;
using namespace regcache::test;

namespace {

constexpr std::size_t kPages = 8;
constexpr std::size_t kLasting = 16;

char *map(std::size_t bytes)
{
    void *const got = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) {
        std::perror("mmap");
        std::exit(1);
    }
    return static_cast<char *>(got);
}

// Watched memory that anybody may change at any time: its registration is in use, so it is watched until the end.
class Bait {
public:
    explicit Bait(Cache &cache) : cache_(cache), memory_(map(kPages * regcache::page_size()))
    {
        if (cache.acquire(memory_, kPages * regcache::page_size(), 1, Match::Anywhere, &held_) != 0)
            std::abort();
    }
    ~Bait()
    {
        munmap(memory_, kPages * regcache::page_size());
        cache_.release(held_);
    }
    Bait(const Bait &) = delete;
    Bait &operator=(const Bait &) = delete;

    // Changes a page: the caller waits until the event was read. Pages that were replaced aren't watched any more; what is
    // told when all of them are keeps the cache from keeping anything.
    void touch()
    {
        const std::size_t page = next_.fetch_add(1);
        if (page < kPages - 1)
            mmap(memory_ + page * regcache::page_size(), regcache::page_size(), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        else
            madvise(memory_ + (kPages - 1) * regcache::page_size(), regcache::page_size(), MADV_DONTNEED);
    }

private:
    static constexpr std::size_t kPages = 50'000;

    Cache &cache_;
    char *const memory_;
    Region *held_ = nullptr;
    std::atomic<std::size_t> next_{0};
};

// Does in its calls what providers and their allocators do.
class RudeLower final : public Lower {
public:
    explicit RudeLower(Failures &failures) : inner_(failures) {}

    int register_range(Range range, Rights rights, void **registration) noexcept override
    {
        misbehave();
        const int error = inner_.register_range(range, rights, registration);
        misbehave();
        return error;
    }
    int deregister(void *registration) noexcept override
    {
        misbehave();
        const int error = inner_.deregister(registration);
        misbehave();
        return error;
    }
    long live() const noexcept { return inner_.live(); }

    std::atomic<Bait *> bait{nullptr};
    std::mutex mutex; // what threads hold while they unmap

private:
    void misbehave() noexcept
    {
        // Above and below the size from which allocators map.
        std::free(std::memset(std::malloc(1000), 1, 1000));
        void *const large = std::malloc(std::size_t{1} << 20);
        std::memset(large, 1, 4096);
        std::free(large);
        if (Bait *const watched = bait.load())
            watched->touch();
        const std::lock_guard guard(mutex);
        std::free(std::malloc(100'000));
    }

    CountingLower inner_;
};

} // namespace

int main(int argc, char **argv)
{
    const Options options = read_options("deadlock", argc, argv);
    const Watchdog watchdog("deadlock", kLimitS / patience());
    Failures failures;
    const std::shared_ptr<Source> source = userfaultfd_or_skip();
    RudeLower lower(failures);
    const std::size_t bytes = kPages * regcache::page_size();
    std::atomic<std::uint64_t> unmapped{0};
    {
        CacheOptions limited;
        limited.limits.max_count = 20;
        limited.name = "deadlock";
        Cache cache(limited, source, lower);
        auto bait = std::make_unique<Bait>(cache);
        lower.bait.store(bait.get());
        const Until until(options.is_long ? 60'000 : 1500);
        std::vector<std::thread> threads;
        for (std::uint64_t i = 0; i < 4; ++i)
            threads.emplace_back([&, i] {
                Random random(options.seed + i);
                char *const lasting = map(kLasting * bytes); // more than the cache keeps
                while (!until.is_over()) {
                    Region *kept = nullptr;
                    if (cache.acquire(lasting + below(random, kLasting) * bytes, bytes, 1, Match::Anywhere, &kept) == 0)
                        cache.release(kept);
                    char *const memory = map(bytes);
                    Region *region = nullptr;
                    if (cache.acquire(memory, bytes, 1, Match::Anywhere, &region) != 0)
                        failures.add("acquire fails");
                    else if (one_in(random, 2))
                        cache.release(std::exchange(region, nullptr));
                    {
                        // The lock that deregistering takes, on whichever thread it comes.
                        const std::lock_guard guard(lower.mutex);
                        munmap(memory, bytes);
                        bait->touch();
                    }
                    if (region)
                        cache.release(region);
                    if (one_in(random, 64))
                        cache.flush();
                    unmapped.fetch_add(1);
                }
                munmap(lasting, kLasting * bytes);
            });
        for (std::thread &thread : threads)
            thread.join();
        lower.bait.store(nullptr);
        bait.reset();
        const StatisticsSnapshot seen = cache.statistics();
        std::printf("%llu unmapped under a lock; %llu registrations, %llu invalidated, %llu evicted, %llu events\n",
                    static_cast<unsigned long long>(unmapped.load()), static_cast<unsigned long long>(seen.registrations),
                    static_cast<unsigned long long>(seen.invalidations), static_cast<unsigned long long>(seen.evictions),
                    static_cast<unsigned long long>(seen.events));
    }
    failures.unless(lower.live() == 0, "%ld registrations are left at the end", lower.live());
    return failures.status();
}
