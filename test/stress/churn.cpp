// SPDX-License-Identifier: BSD-2-Clause
// Does a cache stay right while many threads recycle one another's addresses under it? Threads map, acquire, release,
// change and unmap from one pool of addresses, over the real userfaultfd source and a lower that counts. Nobody gets a
// registration that is older than the last change of its address that was finished before he asked.
#include "stress/counting_lower.hpp"
#include "stress/place.hpp"
#include "support/watchdog.hpp"

#include "cache/cache.hpp"

#include <sys/mman.h>

#include <array>
#include <thread>
#include <vector>

using namespace regcache;
using namespace regcache::test;

namespace {

constexpr std::size_t kPlaces = 12;
constexpr std::size_t kPages = 16; // of a place

// Where threads map.
class Pool {
public:
    Pool() : page_(regcache::page_size()), span_(untouched_addresses(2 * kPlaces * bytes())) {}

    std::size_t page() const noexcept { return page_; }
    std::size_t bytes() const noexcept { return kPages * page_; }
    char *at(std::size_t place) const noexcept { return span_ + 2 * place * bytes(); }

    // When the last change of each page began; written when it is finished.
    std::array<std::array<std::atomic<std::uint64_t>, kPages>, kPlaces> changed{};

private:
    std::size_t page_;
    char *span_;
};

Pool pool;

// Goes on with each change that begins: a registration that was made before a change began has a lower number.
std::atomic<std::uint64_t> clock_now{0};
std::uint64_t clock_of_lower() noexcept { return clock_now.load(); }
std::uint64_t begin_change() noexcept { return clock_now.fetch_add(1) + 1; }

struct Setting {
    unsigned threads;
    std::size_t limit;
    bool is_advised;   // owners use MADV_DONTNEED too
    bool has_visitors; // threads also acquire what somebody else has mapped
};

struct Sum {
    std::atomic<std::uint64_t> mapped{0}, asked{0}, changed{0};
};

class Worker {
public:
    Worker(Cache &cache, const Setting &setting, Failures &failures, Sum &sum, std::uint64_t seed)
        : cache_(cache), setting_(setting), failures_(failures), sum_(sum), random_(seed)
    {
    }

    void run(const Until &until, std::uint64_t most_steps)
    {
        for (std::uint64_t step = 0; step < most_steps && !until.is_over(); ++step)
            one_step();
        while (!held_.empty())
            release_one();
        while (!owned_.empty())
            unmap(0);
    }

private:
    void one_step()
    {
        switch (below(random_, 16)) {
        case 0:
        case 1:
        case 2:
            return map();
        case 3:
        case 4:
            return owned_.empty() ? map() : unmap(below(random_, owned_.size()));
        case 5:
            return owned_.empty() ? map() : change(owned_[below(random_, owned_.size())]);
        case 6:
            if (one_in(random_, 8))
                cache_.flush();
            return;
        case 7:
            if (setting_.has_visitors)
                ask(below(random_, kPlaces));
            return;
        case 8:
        case 9:
        case 10:
            return held_.empty() ? void() : release_one();
        default:
            if (!owned_.empty())
                ask(owned_[below(random_, owned_.size())]);
        }
    }

    // Whoever gets the address first owns it: nothing but the kernel tells that its last owner has left.
    void map()
    {
        const std::size_t place = below(random_, kPlaces);
        void *const want = pool.at(place);
        const std::uint64_t begun = begin_change();
        void *const got = mmap(want, pool.bytes(), PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (got != want) {
            if (got != MAP_FAILED)
                munmap(got, pool.bytes());
            return;
        }
        *static_cast<char *>(want) = 1;
        for (std::atomic<std::uint64_t> &page : pool.changed[place])
            page.store(begun);
        owned_.push_back(place);
        sum_.mapped.fetch_add(1);
        ask(place);
    }

    void unmap(std::size_t index)
    {
        const std::size_t place = owned_[index];
        owned_[index] = owned_.back();
        owned_.pop_back();
        char *const start = pool.at(place);
        if (one_in(random_, 4)) { // in two pieces
            const std::size_t first = (1 + below(random_, kPages - 1)) * pool.page();
            munmap(start + first, pool.bytes() - first);
            munmap(start, first);
        } else {
            munmap(start, pool.bytes());
        }
    }

    // New pages at an address that stays the owner's.
    void change(std::size_t place)
    {
        char *const start = pool.at(place);
        // A page at a time: moves across the borders of what is watched are refused.
        const std::size_t page = below(random_, kPages);
        char *const one = start + page * pool.page();
        const std::uint64_t begun = begin_change();
        const bool is_advised = setting_.is_advised && one_in(random_, 32); // each holds what it touches for a while
        switch (is_advised ? 2 : below(random_, 2)) {
        case 0:
            mmap(one, pool.page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
            break;
        case 1: {
            void *const moved = mremap(one, pool.page(), pool.page(), MREMAP_MAYMOVE | MREMAP_DONTUNMAP, nullptr);
            if (moved != MAP_FAILED)
                munmap(moved, pool.page());
            break;
        }
        default:
            madvise(one, pool.page(), MADV_DONTNEED);
        }
        pool.changed[place][page].store(begun);
        sum_.changed.fetch_add(1);
        ask(place);
    }

    void ask(std::size_t place)
    {
        // Mostly the same few requests, so that there are hits.
        const bool is_usual = !one_in(random_, 4);
        const std::size_t first = is_usual ? 4 * below(random_, kPages / 4) : below(random_, kPages);
        const std::size_t pages = is_usual ? 4 : 1 + below(random_, kPages - first);
        const char *const start = pool.at(place) + first * pool.page() + (is_usual ? 0 : below(random_, 64));
        const Rights rights = is_usual ? 1 : 1 + below(random_, 3);
        std::array<std::uint64_t, kPages> last_change;
        for (std::size_t page = 0; page < kPages; ++page)
            last_change[page] = pool.changed[place][page].load();
        Region *region = nullptr;
        const int error =
            cache_.acquire(start, pages * pool.page() - 64, rights, one_in(random_, 8) ? Match::SameStart : Match::Anywhere,
                           &region);
        sum_.asked.fetch_add(1);
        if (error != 0)
            return failures_.add("acquire fails with %d", error);
        const Registered &got = registered(*region);
        for (std::size_t page = 0; page < kPages; ++page) {
            const Range own = Range::of(pool.at(place) + page * pool.page(), pool.page());
            failures_.unless(got.stamp >= last_change[page] || !region->range.overlaps(own),
                             "page %zu of place %zu changed after %llu, handed out is a registration of %llu", page, place,
                             static_cast<unsigned long long>(last_change[page]), static_cast<unsigned long long>(got.stamp));
        }
        failures_.unless(region->range.contains(Range::of(start, pages * pool.page() - 64)) && covers(region->rights, rights),
                         "the region doesn't serve the request");
        failures_.unless(got.is_live.load(), "handed out what was given back");
        held_.push_back(region);
        if (held_.size() > 4 || one_in(random_, 2))
            release_one();
    }

    void release_one()
    {
        const std::size_t index = below(random_, held_.size());
        Region *const region = held_[index];
        held_[index] = held_.back();
        held_.pop_back();
        failures_.unless(registered(*region).is_live.load(), "given back while it is held");
        cache_.release(region);
    }

    Cache &cache_;
    const Setting setting_;
    Failures &failures_;
    Sum &sum_;
    Random random_;
    std::vector<std::size_t> owned_;
    std::vector<Region *> held_;
};

void churn(const std::shared_ptr<Source> &source, const Setting &setting, const Options &options, Failures &failures)
{
    CountingLower lower(failures, clock_of_lower);
    Sum sum;
    StatisticsSnapshot seen;
    {
        CacheOptions cache_options;
        cache_options.limits.max_count = setting.limit;
        cache_options.name = "churn";
        Cache cache(cache_options, source, lower);
        const Until until(options.is_long ? 20'000 : 500);
        std::vector<std::thread> threads;
        for (unsigned i = 0; i < setting.threads; ++i)
            threads.emplace_back([&, i] {
                Worker(cache, setting, failures, sum, options.seed * 64 + i).run(until, options.is_long ? 10'000'000 : 20'000);
            });
        for (std::thread &thread : threads)
            thread.join();
        cache.flush();
        seen = cache.statistics();
    }
    failures.unless(lower.live() == 0, "%ld registrations are left at the end", lower.live());
    failures.unless(seen.asked == sum.asked.load(), "%llu requests were counted, not %llu",
                    static_cast<unsigned long long>(seen.asked), static_cast<unsigned long long>(sum.asked.load()));
    std::printf("%2u threads, limit %3zd%s%s: %llu mapped, %llu changed, %llu asked, %llu hits, %llu invalidated, %llu evicted, "
                "%llu overtaken, %llu lost, %llu waits\n",
                setting.threads, static_cast<ssize_t>(setting.limit), setting.is_advised ? ", advice" : "",
                setting.has_visitors ? ", visitors" : "", static_cast<unsigned long long>(sum.mapped.load()),
                static_cast<unsigned long long>(sum.changed.load()), static_cast<unsigned long long>(seen.asked),
                static_cast<unsigned long long>(seen.hits), static_cast<unsigned long long>(seen.invalidations),
                static_cast<unsigned long long>(seen.evictions), static_cast<unsigned long long>(seen.overtaken),
                static_cast<unsigned long long>(seen.lost), static_cast<unsigned long long>(seen.confirm_waits));
    std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv)
{
    const Options options = read_options("churn", argc, argv);
    const Watchdog watchdog("churn", kLimitS / patience());
    Failures failures;
    const std::shared_ptr<Source> source = userfaultfd_or_skip();
    // MADV_DONTNEED is told before the pages go: somebody who registers meanwhile gets what goes, for a while without it
    // being kept (quarantine). How long that takes depends on the machine, so visitors and advice come apart.
    for (const std::size_t limit : {std::size_t{2}, std::size_t{64}, SIZE_MAX})
        for (const unsigned threads : {2u, 4u, 16u})
            churn(source, {threads, limit, threads == 4, threads != 4}, options, failures);
    return failures.status();
}
