// SPDX-License-Identifier: BSD-2-Clause
// cache/lookup.cpp: which requests are hits, and what a hit costs.
#include "unit/cache_fixture.hpp"

using namespace regcache;
using namespace regcache::test;

Test(cache_lookup, second_request_for_the_same_range_is_a_hit)
{
    CacheFixture f;
    Region *const first = f.get(pages(1, 4));
    f.cache->release(first);
    Region *const second = f.get(pages(1, 4));
    cr_expect(second == first);
    cr_expect(f.lower.made() == 1);
    cr_expect(f.source->watches() == 1);
    f.cache->release(second);
}

Test(cache_lookup, hit_asks_the_source_once)
{
    CacheFixture f;
    f.use(pages(1));
    const std::size_t positions = f.source->positions(), looks = f.source->looks();
    cr_expect(f.hits(pages(1)));
    cr_expect(f.source->positions() == positions + 1);
    cr_expect(f.source->looks() == looks); // nothing has happened, so the queue isn't read
}

Test(cache_lookup, users_of_a_region_share_it)
{
    CacheFixture f;
    Region *const first = f.get(pages(1));
    cr_expect(f.get(pages(1)) == first);
    cr_expect(f.get(pages(1)) == first);
    cr_expect(first->users == 3);
    f.cache->release(first);
    f.cache->release(first);
    cr_expect(first->users == 1);
    cr_expect(f.lower.live() == 1);
    f.cache->release(first);
    cr_expect(f.hits(pages(1)));
}

Test(cache_lookup, part_of_a_region_is_a_hit)
{
    CacheFixture f;
    f.use(pages(1, 4));
    cr_expect(f.hits(pages(2, 2)));
    cr_expect(f.hits(pages(1, 1)));
    cr_expect(f.hits(pages(4, 1)));
    const std::uintptr_t inside = pages(2).begin + 17;
    cr_expect(f.hits({inside, inside + 1}));
    cr_expect(f.hits({inside, pages(5).begin})); // to the last byte
}

Test(cache_lookup, more_than_a_region_is_a_miss)
{
    CacheFixture f;
    f.use(pages(10, 4));
    cr_expect(!f.hits(pages(9, 2)));
    cr_expect(!f.hits(pages(13, 2)));
    cr_expect(!f.hits(pages(9, 6)));
    cr_expect(!f.hits(pages(20, 1)));
    const std::uintptr_t end = pages(14).begin;
    CacheFixture other;
    other.use(pages(10, 4));
    cr_expect(!other.hits({end - 1, end + 1}));
}

Test(cache_lookup, neighbours_are_not_merged)
{
    CacheFixture f;
    f.use(pages(1, 2));
    f.use(pages(3, 2));
    cr_expect(!f.hits(pages(2, 2)));
    cr_expect(f.statistics().registrations == 3);
}

Test(cache_lookup, only_rights_that_a_region_has_are_served)
{
    for (Rights have = 1; have < 16; ++have)
        for (Rights want = 1; want < 16; ++want) {
            CacheFixture f;
            f.use(pages(1), have);
            cr_expect(f.hits(pages(1), want) == ((have & want) == want), "have %d, want %d", static_cast<int>(have),
                      static_cast<int>(want));
        }
}

Test(cache_lookup, wider_rights_make_a_region_of_exactly_those)
{
    CacheFixture f;
    Region *const narrow = f.get(pages(1), kRead);
    Region *const wide = f.get(pages(1), kRead | kRemoteWrite);
    cr_expect(narrow != wide);
    cr_expect(narrow->rights == kRead && wide->rights == (kRead | kRemoteWrite));
    f.cache->release(narrow);
    f.cache->release(wide);
}

Test(cache_lookup, same_start_is_served_by_the_first_byte_alone)
{
    CacheFixture f;
    const Range all = pages(1, 4);
    f.cache->release(f.get(all, kRead, Match::SameStart));
    cr_expect(f.hits(all, kRead, Match::SameStart));
    cr_expect(f.hits({all.begin, all.begin + 10}, kRead, Match::SameStart));
    cr_expect(!f.hits(pages(2, 1), kRead, Match::SameStart));
    cr_expect(!f.hits({all.begin + 1, all.begin + 10}, kRead, Match::SameStart));
    cr_expect(f.hits(pages(3, 1))); // Anywhere may use it
}

Test(cache_lookup, same_start_begins_at_the_byte_and_not_at_its_page)
{
    CacheFixture f;
    const Range request{pages(1).begin + 100, pages(1).begin + 200};
    Region *const region = f.get(request, kRead, Match::SameStart);
    cr_expect(region->range == request);
    cr_expect(f.source->watches(pages(1)));
    f.cache->release(region);
    cr_expect(f.hits(request, kRead, Match::SameStart));
    f.source->tell({request.end + 100, request.end + 101}); // elsewhere on the page: told all the same
    cr_expect(f.hits(request, kRead, Match::SameStart));
    f.source->tell(pages(1));
    cr_expect(!f.hits(request, kRead, Match::SameStart));
}

Test(cache_lookup, whole_pages_are_registered)
{
    CacheFixture f;
    const Range request{pages(1).begin + 100, pages(3).begin + 1};
    Region *const region = f.get(request);
    cr_expect(region->range == pages(1, 3));
    f.cache->release(region);
    cr_expect(f.hits(pages(1, 3)));
}

// Every way to a region goes through the same look at the queue.
Test(cache_lookup, no_request_is_served_by_a_region_that_an_event_touched)
{
    struct Way {
        Range request;
        Rights rights;
        Match match;
    };
    const Way ways[] = {
        {pages(1, 4), kRead, Match::Anywhere},   {pages(1, 4), kRead, Match::SameStart},
        {pages(2, 1), kRead, Match::Anywhere},   {pages(1, 1), kWrite, Match::SameStart},
        {pages(4, 1), kWrite, Match::Anywhere},
    };
    for (const Way &way : ways)
        for (const bool is_in_use : {false, true})
            for (const bool keeper_was_first : {false, true}) {
                CacheFixture f;
                Region *const region = f.get(pages(1, 4), kRead | kWrite);
                if (!is_in_use)
                    f.cache->release(region);
                f.source->tell(pages(3, 1));
                if (keeper_was_first) {
                    f.source->ring();
                    cr_assert(eventually([&] { return f.statistics().events == 1; }));
                }
                cr_expect(!f.hits(way.request, way.rights, way.match));
                if (is_in_use)
                    f.cache->release(region);
            }
}

Test(cache_lookup, event_of_other_memory_harms_no_region)
{
    CacheFixture f;
    f.use(pages(10, 4));
    f.source->tell(pages(9, 1));
    f.source->tell(pages(14, 1));
    f.source->tell(pages(100, 50));
    cr_expect(f.hits(pages(10, 4)));
    cr_expect(f.statistics().invalidations == 0);
    cr_expect(f.statistics().events == 3);
}

// A hit whose own thread changed the memory while it asked: position() is older than the change, which isn't finished.
Test(cache_lookup, events_up_to_the_position_are_applied_and_later_ones_too)
{
    CacheFixture f;
    f.use(pages(1));
    f.use(pages(2));
    f.source->tell(pages(1));
    f.source->tell_early(pages(2));
    cr_expect(!f.hits(pages(1))); // reads the queue, and so both
    cr_expect(!f.hits(pages(2)));
}

Test(cache_lookup, unfinished_change_alone_does_not_cost_a_hit)
{
    CacheFixture f;
    f.use(pages(1));
    f.source->tell_early(pages(1));
    cr_expect(f.hits(pages(1)));
}

Test(cache_lookup, busy_source_means_a_new_registration)
{
    CacheFixture f;
    Region *const kept = f.get(pages(1));
    f.source->is_busy = true;
    Region *const other = f.get(pages(1));
    cr_expect(other != kept);
    cr_expect(f.statistics().unconfirmed == 1);
    cr_expect(f.statistics().misses == 2);
    f.source->is_busy = false;
    f.cache->release(kept);
    f.cache->release(other);
    cr_expect(f.hits(pages(1)));
}

Test(cache_lookup, region_with_rights_that_end_with_use_ends_with_its_last_user)
{
    CacheOptions options = options_of();
    options.ends_with_use = kRemoteRead | kRemoteWrite;
    CacheFixture f(options);
    Region *const first = f.get(pages(1), kRemoteWrite);
    cr_expect(f.get(pages(1), kRemoteWrite) == first); // shared while it is used
    f.cache->release(first);
    cr_expect(f.lower.live() == 1);
    f.cache->release(first);
    cr_expect(f.lower.live() == 0);
    cr_expect(f.source->watched_now() == 0);
    f.use(pages(1), kRead);
    cr_expect(f.lower.live() == 1); // local rights stay
    cr_expect(f.hits(pages(1), kRead));
}

Test(cache_lookup, empty_and_impossible_ranges_are_registered_as_they_are)
{
    CacheFixture f;
    Region *region = nullptr;
    void *const near_the_end = reinterpret_cast<void *>(UINTPTR_MAX - 10);
    cr_assert(f.cache->acquire(near_the_end, 5, kRead, Match::Anywhere, &region) == 0);
    cr_expect(region->range == Range::of(near_the_end, 5));
    f.cache->release(region);
    cr_expect(f.lower.live() == 0); // not kept
    cr_assert(f.cache->acquire(pages(1).address(), 0, kRead, Match::Anywhere, &region) == 0);
    f.cache->release(region);
    cr_expect(f.source->wrong() == 0);
}
