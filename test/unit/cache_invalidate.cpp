// SPDX-License-Identifier: BSD-2-Clause
// cache/invalidate.cpp: what events do to regions, idle or in use.
#include "unit/cache_fixture.hpp"

using namespace regcache;
using namespace regcache::test;

Test(cache_invalidate, any_part_of_a_region_ends_it)
{
    const Range all = pages(10, 5);
    for (const Range changed : {pages(10, 1), pages(12, 1), pages(14, 1), pages(9, 2), pages(14, 2), pages(0, 100), all,
                                Range{all.begin, all.begin + 1}, Range{all.end - 1, all.end}}) {
        CacheFixture f;
        f.use(all);
        f.source->tell(changed);
        cr_expect(!f.hits(all));
        cr_expect(f.statistics().invalidations == 1);
    }
}

Test(cache_invalidate, unmap_while_in_use_keeps_region_until_release)
{
    for (const Range changed : {pages(10, 1), pages(12, 1), pages(14, 1), pages(10, 5)}) {
        CacheFixture f;
        Region *const old = f.get(pages(10, 5));
        f.source->tell(changed);
        Region *const fresh = f.get(pages(10, 5));
        cr_expect(fresh != old);
        cr_expect(f.lower.live() == 2);
        cr_expect(registration_of(*old).is_live);
        f.cache->release(old);
        cr_expect(f.lower.live() == 1);
        f.cache->release(fresh);
        cr_expect(f.hits(pages(10, 5)));
    }
}

Test(cache_invalidate, each_user_of_a_stale_region_may_release_it)
{
    CacheFixture f;
    Region *const region = f.get(pages(1));
    f.get(pages(1));
    f.get(pages(1));
    f.source->tell(pages(1));
    f.use(pages(2)); // applies it
    f.cache->release(region);
    f.cache->release(region);
    cr_expect(f.lower.has(pages(1)));
    f.cache->release(region);
    cr_expect(!f.lower.has(pages(1)));
}

Test(cache_invalidate, idle_region_is_given_back_by_the_keeper)
{
    CacheFixture f;
    f.use(pages(1));
    f.source->tell(pages(1));
    cr_expect(f.keeper_leaves(0));
    cr_expect(f.source->watched_now() == 0);
    cr_expect(f.statistics().invalidations == 1);
}

Test(cache_invalidate, event_ends_every_region_that_it_touches)
{
    CacheFixture f;
    for (std::size_t i = 0; i < 10; ++i)
        f.use(pages(10 * i, 10));
    for (std::size_t i = 0; i < 10; ++i)
        f.use(pages(10 * i + 2, 3), kRead | kWrite);
    f.source->tell(pages(35, 20)); // the end of 3, 4, the begin of 5
    cr_expect(f.hits(pages(20, 10)));
    cr_expect(f.hits(pages(60, 10)));
    cr_expect(f.hits(pages(32, 3), kRead | kWrite));
    cr_expect(!f.hits(pages(30, 10)));
    cr_expect(!f.hits(pages(42, 3), kRead | kWrite));
    cr_expect(!f.hits(pages(50, 10)));
    cr_expect(f.statistics().invalidations == 5);
}

Test(cache_invalidate, lost_events_end_everything)
{
    CacheFixture f;
    Region *const in_use = f.get(pages(1));
    f.use(pages(2));
    f.use(pages(1000, 100));
    f.source->overflow();
    cr_expect(!f.hits(pages(2)));
    cr_expect(f.statistics().lost == 1);
    cr_expect(f.statistics().invalidations == 3);
    f.cache->release(in_use);
    cr_expect(!f.lower.has(pages(1)));
    cr_expect(!f.hits(pages(1000, 100)));
    // What was lost may have been of changes that are not over: a while passes before anything is kept.
    cr_expect(eventually([&] { return f.hits(pages(2)); }));
}

Test(cache_invalidate, pages_that_arrive_end_nothing)
{
    CacheFixture f;
    f.use(pages(1));
    f.source->tell(pages(1), Change::Arrived);
    cr_expect(f.hits(pages(1)));
    cr_expect(f.statistics().events == 1 && f.statistics().invalidations == 0);
}

// The pages go after the event: what is registered now may still get the old ones.
Test(cache_invalidate, pages_that_are_going_are_not_cached_for_a_while)
{
    CacheFixture f;
    f.use(pages(1, 4));
    f.source->tell(pages(2), Change::Going);
    Region *const region = f.get(pages(1, 4));
    // A test that is slower than the quarantine would see it kept; then the event came long ago.
    if (region->state == RegionState::Gone)
        cr_expect(f.statistics().overtaken == 1);
    f.cache->release(region);
    cr_expect(f.statistics().invalidations == 1);
    // Later it is cached again.
    cr_expect(eventually([&] { return f.hits(pages(1, 4)); }));
}

Test(cache_invalidate, pages_beside_those_that_are_going_are_cached)
{
    CacheFixture f;
    f.source->tell(pages(2), Change::Going);
    f.use(pages(3));
    cr_expect(f.hits(pages(3)));
}

Test(cache_invalidate, same_event_again_ends_nothing_twice)
{
    CacheFixture f;
    f.use(pages(1));
    for (int i = 0; i < 10; ++i)
        f.source->tell(pages(1));
    cr_expect(!f.hits(pages(1)));
    cr_expect(f.statistics().invalidations == 1);
    cr_expect(f.statistics().events == 10);
    cr_expect(f.hits(pages(1)));
}

Test(cache_invalidate, taken_out_region_serves_its_user_alone)
{
    CacheFixture f;
    Region *const region = f.get(pages(1));
    cr_expect(f.cache->take_out(*region));
    cr_expect(!f.hits(pages(1)));
    cr_expect(f.cache->take_out(*region)); // again: still alone
    f.cache->release(region);
    cr_expect(f.lower.live() == 1); // the newcomer
    cr_expect(f.hits(pages(1)));
}

Test(cache_invalidate, shared_region_cannot_be_taken_out)
{
    CacheFixture f;
    Region *const region = f.get(pages(1));
    cr_expect(f.get(pages(1)) == region);
    cr_expect(!f.cache->take_out(*region));
    cr_expect(f.hits(pages(1)));
    f.cache->release(region);
    cr_expect(f.cache->take_out(*region));
    f.cache->release(region);
    cr_expect(f.lower.live() == 0);
}

Test(cache_invalidate, stale_region_can_be_taken_out)
{
    CacheFixture f;
    Region *const region = f.get(pages(1));
    f.source->tell(pages(1));
    f.use(pages(2));
    cr_expect(f.cache->take_out(*region));
    f.cache->release(region);
    cr_expect(f.lower.live() == 1);
}
