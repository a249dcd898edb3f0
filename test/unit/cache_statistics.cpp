// SPDX-License-Identifier: BSD-2-Clause
// cache/statistics.cpp: the numbers add up.
#include "unit/cache_fixture.hpp"

#include <thread>
#include <vector>

using namespace regcache;
using namespace regcache::test;

Test(cache_statistics, begin_at_nothing)
{
    CacheFixture f;
    const auto now = f.statistics();
    cr_expect(now.asked == 0 && now.hits == 0 && now.misses == 0 && now.passed_through == 0);
    cr_expect(now.pinned_bytes == 0 && now.most_pinned_bytes == 0 && now.registrations == 0);
    cr_expect(now.events == 0 && now.lost == 0 && now.uncacheable == 0);
}

Test(cache_statistics, each_request_is_counted_once)
{
    CacheFixture f;
    for (std::size_t i = 0; i < 5; ++i)
        f.use(pages(1));
    f.use(pages(2));
    f.source->answer = Watch::Refused;
    f.use(pages(3));
    f.source->is_busy = true;
    f.use(pages(1));
    f.cache->count_passed_through();
    f.cache->count_passed_through();
    const auto now = f.statistics();
    cr_expect(now.hits == 4);
    cr_expect(now.misses == 4);
    cr_expect(now.passed_through == 2);
    cr_expect(now.asked == 10);
    cr_expect(now.unconfirmed == 1);
    cr_expect(now.registrations == 4);
    cr_expect(now.uncacheable == 2);
}

Test(cache_statistics, reasons_add_up_to_the_uncacheable)
{
    CacheFixture f;
    const Watch answers[] = {Watch::NoEvents, Watch::NotMapped, Watch::SharedKind, Watch::Refused, Watch::TooMany};
    std::uint64_t times = 0;
    for (const Watch answer : answers) {
        f.source->answer = answer;
        ++times;
        for (std::uint64_t i = 0; i < times; ++i)
            f.use(pages(1));
    }
    const auto now = f.statistics();
    for (std::uint64_t i = 0; i < times; ++i)
        cr_expect(now.uncacheable_by_reason[static_cast<unsigned>(answers[i])] == i + 1);
    cr_expect(now.uncacheable_by_reason[static_cast<unsigned>(Watch::Watched)] == 0);
    cr_expect(now.uncacheable == 15);
}

Test(cache_statistics, source_tells_how_often_it_waited)
{
    CacheFixture f;
    cr_expect(f.statistics().confirm_waits == 7);
    cr_expect(&f.cache->source() == f.source.get());
}

Test(cache_statistics, threads_lose_no_count)
{
    CacheFixture f;
    constexpr std::size_t kThreads = 4, kRounds = 2000;
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
            for (std::size_t i = 0; i < kRounds; ++i) {
                Region *region = nullptr;
                const Range range = pages((i + t) % 16);
                if (f.cache->acquire(range.address(), range.size(), kRead, Match::Anywhere, &region) == 0)
                    f.cache->release(region);
                f.cache->count_passed_through();
            }
        });
    for (std::thread &thread : threads)
        thread.join();
    const auto now = f.statistics();
    cr_expect(now.asked == 2 * kThreads * kRounds);
    cr_expect(now.passed_through == kThreads * kRounds);
    cr_expect(now.registrations == f.lower.made());
    cr_expect(now.pinned_bytes == f.lower.live_bytes());
}
