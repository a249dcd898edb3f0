// SPDX-License-Identifier: BSD-2-Clause
// cache/evict.cpp: which regions go when there is no room, and how a region ends.
#include "unit/cache_fixture.hpp"

#include <thread>

using namespace regcache;
using namespace regcache::test;

namespace {

// So many requests that what was last used before them is old.
void let_grow_old(CacheFixture &f, Range busy)
{
    for (int i = 0; i < 200; ++i)
        f.use(busy);
}

} // namespace

Test(cache_evict, longest_idle_goes_first)
{
    CacheFixture f(options_of(4));
    for (std::size_t i = 0; i < 4; ++i)
        f.use(pages(10 * i));
    f.use(pages(0)); // used again: 1 is the oldest now
    let_grow_old(f, pages(30));
    f.use(pages(100));
    cr_expect(f.lower.live() == 4);
    cr_expect(!f.lower.has(pages(10)));
    let_grow_old(f, pages(100));
    f.use(pages(110));
    cr_expect(!f.lower.has(pages(20)));
    cr_expect(f.hits(pages(0)) && f.hits(pages(30)) && f.hits(pages(100)) && f.hits(pages(110)));
    cr_expect(f.statistics().evictions == 2);
}

Test(cache_evict, count_never_exceeds_its_limit)
{
    CacheFixture f(options_of(10));
    for (std::size_t i = 0; i < 1000; ++i) {
        f.use(pages(i * 7 % 100));
        cr_assert(f.lower.live() <= 10);
    }
}

Test(cache_evict, bytes_never_exceed_their_limit)
{
    CacheFixture f(options_of(SIZE_MAX, 50));
    for (std::size_t i = 0; i < 1000; ++i) {
        f.use(pages(100 * (i % 20), 1 + i % 13));
        cr_assert(f.lower.live_bytes() <= 50 * page_size());
        cr_assert(f.statistics().pinned_bytes == f.lower.live_bytes());
    }
}

Test(cache_evict, as_many_go_as_a_large_one_needs)
{
    CacheFixture f(options_of(SIZE_MAX, 10));
    for (std::size_t i = 0; i < 10; ++i)
        f.use(pages(2 * i));
    let_grow_old(f, pages(18));
    f.use(pages(100, 7));
    cr_expect(f.hits(pages(100, 7)));
    cr_expect(f.statistics().evictions == 7);
    for (const std::size_t i : {7, 8, 9})
        cr_expect(f.hits(pages(2 * i)));
}

Test(cache_evict, region_in_use_is_never_taken)
{
    CacheFixture f(options_of(3));
    Region *const a = f.get(pages(0)), *const b = f.get(pages(10)), *const c = f.get(pages(20));
    for (std::size_t i = 3; i < 50; ++i)
        f.use(pages(10 * i));
    cr_expect(f.statistics().evictions == 0);
    cr_expect(f.statistics().not_admitted == 47);
    cr_expect(f.lower.live() == 3);
    cr_expect(f.get(pages(0)) == a);
    for (Region *each : {a, a, b, c})
        f.cache->release(each);
}

Test(cache_evict, region_that_is_not_kept_serves_its_user)
{
    CacheFixture f(options_of(1));
    Region *const kept = f.get(pages(0));
    Region *const other = f.get(pages(10));
    cr_expect(registration_of(*other).is_live);
    cr_expect(f.lower.live() == 2);
    f.cache->release(other);
    cr_expect(f.lower.live() == 1);
    f.cache->release(kept);
    cr_expect(f.hits(pages(0)));
}

Test(cache_evict, limit_of_nothing_keeps_nothing)
{
    CacheFixture f(options_of(0));
    f.use(pages(0));
    f.use(pages(0));
    cr_expect(f.lower.live() == 0);
    cr_expect(f.statistics().hits == 0);
}

// In the order of time the victim would always be what is needed next.
Test(cache_evict, going_round_a_little_more_than_fits_keeps_most_of_it)
{
    for (const std::size_t limit : {4u, 16u, 100u}) {
        CacheFixture f(options_of(limit));
        const std::size_t rounds = 50;
        for (std::size_t round = 0; round < rounds; ++round)
            for (std::size_t i = 0; i <= limit; ++i)
                f.use(pages(2 * i));
        const auto now = f.statistics();
        cr_expect(now.hits * 10 >= now.asked * 6, "limit %zu: only %zu hits in %zu", limit, static_cast<std::size_t>(now.hits),
                  static_cast<std::size_t>(now.asked));
        cr_expect(f.lower.made() <= now.asked);
    }
}

Test(cache_evict, going_round_much_more_than_fits_costs_no_more_than_without_a_cache)
{
    CacheFixture f(options_of(16));
    for (std::size_t i = 0; i < 64 * 50; ++i)
        f.use(pages(2 * (i % 64)));
    cr_expect(f.lower.asked() <= 64 * 50);
}

Test(cache_evict, set_that_is_used_no_more_makes_room_for_the_next_one)
{
    CacheFixture f(options_of(16));
    for (std::size_t i = 0; i < 16 * 5; ++i)
        f.use(pages(i % 16));
    for (std::size_t i = 0; i < 16 * 20; ++i)
        f.use(pages(100 + i % 16));
    for (std::size_t i = 0; i < 16; ++i)
        cr_expect(f.hits(pages(100 + i)));
}

Test(cache_evict, idle_region_inside_a_new_one_goes)
{
    CacheFixture f;
    for (std::size_t size = 1; size <= 20; ++size)
        f.use(pages(1, size));
    cr_expect(f.lower.live() == 1);
    cr_expect(f.lower.live_bytes() == 20 * page_size());
    cr_expect(f.hits(pages(1, 3)));
}

Test(cache_evict, region_inside_a_new_one_stays_while_it_is_used)
{
    CacheFixture f;
    Region *const inner = f.get(pages(3));
    f.use(pages(1, 10));
    cr_expect(f.lower.live() == 2);
    f.cache->release(inner);
    cr_expect(f.lower.live() == 2);
}

Test(cache_evict, region_inside_a_new_one_stays_if_it_can_do_more)
{
    CacheFixture f;
    f.use(pages(3), kRead | kWrite);
    f.use(pages(4), kRead);
    f.use(pages(1, 10), kRead);
    cr_expect(f.lower.has(pages(3)) && !f.lower.has(pages(4)));
    cr_expect(f.hits(pages(3), kRead | kWrite));
}

Test(cache_evict, region_that_only_touches_a_new_one_stays)
{
    CacheFixture f;
    f.use(pages(0, 3));
    f.use(pages(9, 3));
    f.use(pages(2, 8));
    cr_expect(f.lower.live() == 3);
}

Test(cache_evict, region_for_one_start_takes_no_others)
{
    CacheFixture f;
    f.use(pages(3));
    f.cache->release(f.get(pages(1, 10), kRead, Match::SameStart));
    cr_expect(f.lower.live() == 2);
}

Test(cache_evict, refusal_below_gives_back_stale_regions_first)
{
    CacheFixture f;
    f.use(pages(1));
    f.use(pages(2));
    f.source->tell(pages(1));
    f.lower.refuse(-ENOMEM);
    f.use(pages(3));
    cr_expect(!f.lower.has(pages(1)) && f.lower.has(pages(2)));
    cr_expect(f.statistics().evictions == 0);
}

Test(cache_evict, refusal_below_gives_back_an_eighth_at_a_time)
{
    CacheFixture f;
    for (std::size_t i = 0; i < 80; ++i)
        f.use(pages(2 * i));
    f.lower.refuse(-ENOMEM, 2);
    f.use(pages(1000));
    cr_expect(f.statistics().evictions == 11 + 9);
    cr_expect(f.lower.live() == 61);
}

// Row by row a working set that the lower provider has no room for is still served.
Test(cache_evict, working_set_beyond_the_lower_providers_limit_is_served)
{
    CacheFixture f;
    f.lower.max_count = 16;
    for (std::size_t i = 0; i < 1000; ++i)
        f.use(pages(2 * (i % 40)));
    cr_expect(f.statistics().asked == 1000);
}

Test(cache_evict, room_that_another_thread_made_since_the_refusal_is_tried)
{
    CacheOptions options = options_of();
    options.ends_with_use = kRemoteWrite;
    CacheFixture f(options);
    f.lower.max_count = 1;
    Region *const other = f.get(pages(1), kRemoteWrite);
    f.lower.after_refusal = [&](Range) { f.cache->release(other); };
    f.use(pages(2));
    cr_expect(f.statistics().refused_below == 1);
}

Test(cache_evict, room_that_another_thread_is_making_is_waited_for)
{
    CacheOptions options = options_of();
    options.ends_with_use = kRemoteWrite;
    CacheFixture f(options);
    f.lower.max_count = 1;
    Region *const other = f.get(pages(1), kRemoteWrite);
    std::atomic<bool> is_ending{false}, was_refused{false};
    f.lower.on_deregister = [&](Range range) {
        if (range == pages(1)) {
            is_ending = true;
            cr_expect(eventually([&] { return was_refused.load(); }));
        }
    };
    f.lower.after_refusal = [&](Range) { was_refused = true; };
    std::thread ender([&] { f.cache->release(other); });
    cr_expect(eventually([&] { return is_ending.load(); }));
    // The first call waits a tenth of a second at least; a slow machine may need another one.
    cr_expect(eventually([&] {
        Region *region = nullptr;
        if (f.cache->acquire(pages(2).address(), page_size(), kRead, Match::Anywhere, &region) != 0)
            return false;
        f.cache->release(region);
        return true;
    }));
    ender.join();
}

Test(cache_evict, failed_deregistration_is_said_once_and_counted)
{
    const LogLines log;
    CacheFixture f;
    f.use(pages(1));
    f.use(pages(2, 3));
    f.use(pages(9));
    f.lower.deregister_error = -EBUSY;
    f.cache->flush();
    cr_expect(f.lower.failed() == 3);
    cr_expect(f.statistics().failed_deregistrations == 3);
    cr_expect(f.statistics().pinned_bytes == 5 * page_size()); // they are pinned still
    cr_expect(f.source->watched_now() == 0);
    cr_expect(log.warnings("can't deregister") == 1 && log.all() == 1, "%s", log.text().c_str());
    f.lower.deregister_error = 0;
    f.use(pages(1));
    cr_expect(f.hits(pages(1)));
    f.lower_keeps = 3;
}
