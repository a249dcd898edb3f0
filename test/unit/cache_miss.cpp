// SPDX-License-Identifier: BSD-2-Clause
// cache/miss.cpp: in which order a region is made, and when it isn't kept.
#include "unit/cache_fixture.hpp"

using namespace regcache;
using namespace regcache::test;

Test(cache_miss, watches_before_it_registers)
{
    CacheFixture f;
    bool is_watched = false;
    f.lower.on_register = [&](Range range) { is_watched = f.source->watches(range); };
    f.use(pages(1, 2));
    cr_expect(is_watched);
}

Test(cache_miss, watches_until_the_registration_is_gone)
{
    CacheFixture f;
    bool was_watched = false;
    f.lower.on_deregister = [&](Range range) { was_watched = f.source->watches(range); };
    f.use(pages(1, 2));
    f.cache->flush();
    cr_expect(was_watched);
    cr_expect(f.source->watched_now() == 0);
}

Test(cache_miss, change_while_it_registers_keeps_it_out_of_the_cache)
{
    for (const Range changed : {pages(1, 1), pages(2, 1), pages(3, 1), pages(0, 9)}) {
        CacheFixture f;
        f.lower.on_register = [&](Range) { f.source->tell(changed); };
        Region *const region = f.get(pages(1, 3));
        f.lower.on_register = nullptr;
        cr_expect(region->state == RegionState::Gone);
        cr_expect(f.statistics().overtaken == 1);
        cr_expect(!f.hits(pages(1, 3)));
        f.cache->release(region);
        cr_expect(f.lower.live() == 1); // the later one
    }
}

Test(cache_miss, change_after_it_registered_keeps_it_out_of_the_cache)
{
    CacheFixture f;
    f.lower.after_register = [&](Range range) { f.source->tell(range); };
    f.use(pages(1));
    cr_expect(f.lower.live() == 0);
    cr_expect(f.statistics().overtaken == 1);
}

// The change may be told before its system call is over: position() doesn't count then.
Test(cache_miss, unfinished_change_while_it_registers_keeps_it_out_too)
{
    CacheFixture f;
    f.lower.on_register = [&](Range range) { f.source->tell_early(range, Change::Going); };
    f.use(pages(1));
    cr_expect(f.lower.live() == 0);
}

Test(cache_miss, change_between_the_look_and_the_watch_keeps_it_out)
{
    CacheFixture f;
    f.source->on_watch = [&](Range range) { f.source->tell(range); };
    f.use(pages(1));
    cr_expect(f.statistics().overtaken == 1);
    cr_expect(f.lower.live() == 0);
}

Test(cache_miss, change_elsewhere_while_it_registers_is_no_matter)
{
    CacheFixture f;
    f.lower.on_register = [&](Range) { f.source->tell(pages(50)); };
    f.use(pages(1));
    f.lower.on_register = nullptr;
    cr_expect(f.hits(pages(1)));
}

Test(cache_miss, pages_that_arrive_while_it_registers_are_no_matter)
{
    CacheFixture f;
    f.lower.on_register = [&](Range range) { f.source->tell(range, Change::Arrived); };
    f.use(pages(1));
    f.lower.on_register = nullptr;
    cr_expect(f.hits(pages(1)));
}

// The range's earlier life: its events were on their way when the new region was made.
Test(cache_miss, event_of_the_ranges_earlier_life_does_not_end_its_next_one)
{
    CacheFixture f;
    f.use(pages(1));
    f.source->tell(pages(1));
    f.source->tell_early(pages(1)); // a second one that nobody has applied yet
    f.use(pages(1));
    cr_expect(f.hits(pages(1)));
    cr_expect(f.statistics().invalidations == 1);
}

Test(cache_miss, queue_that_overflows_while_it_registers_keeps_it_out)
{
    CacheFixture f;
    f.lower.on_register = [&](Range) { f.source->overflow(); };
    f.use(pages(1));
    cr_expect(f.statistics().overtaken == 1);
    cr_expect(f.statistics().lost == 1);
    cr_expect(f.lower.live() == 0);
}

Test(cache_miss, widened_watch_counts_whole)
{
    CacheFixture f;
    f.source->widens_to = 512 * page_size();
    f.use(pages(513));
    cr_expect(f.source->watches(pages(512, 512)));
    cr_expect(f.hits(pages(513)));
    f.lower.on_register = [&](Range) { f.source->tell(pages(2000)); }; // same huge page, other small page
    f.use(pages(1999));
    cr_expect(f.statistics().overtaken == 1);
}

Test(cache_miss, memory_that_cannot_be_watched_is_registered_and_not_kept)
{
    for (const Watch answer : {Watch::NoEvents, Watch::NotMapped, Watch::SharedKind, Watch::Refused, Watch::TooMany}) {
        const LogLines log;
        CacheFixture f;
        f.source->answer = answer;
        f.use(pages(1));
        f.use(pages(1));
        f.use(pages(2));
        cr_expect(f.lower.made() == 3 && f.lower.live() == 0);
        cr_expect(f.statistics().uncacheable == 3);
        cr_expect(f.statistics().uncacheable_by_reason[static_cast<unsigned>(answer)] == 3);
        // One line says why; that there is no source at all is told by whoever chose it.
        const std::size_t lines = answer == Watch::NoEvents ? 0 : 1;
        cr_expect(log.all() == lines, "%s", log.text().c_str());
        cr_expect(log.warnings(describe(answer)) == lines);
        cr_expect(log.warnings("fixture: ") == lines);
    }
}

Test(cache_miss, each_reason_is_said_once)
{
    const LogLines log;
    CacheFixture f;
    for (int round = 0; round < 3; ++round)
        for (const Watch answer : {Watch::NotMapped, Watch::SharedKind, Watch::Refused, Watch::TooMany}) {
            f.source->answer = answer;
            f.use(pages(1));
        }
    cr_expect(log.warnings() == 4, "%s", log.text().c_str());
}

Test(cache_miss, memory_that_can_be_watched_is_cached_beside_it)
{
    CacheFixture f;
    f.use(pages(1));
    f.source->answer = Watch::Refused;
    cr_expect(f.hits(pages(1)));
    f.use(pages(2));
    f.source->answer = Watch::Watched;
    cr_expect(!f.hits(pages(2)));
    cr_expect(f.hits(pages(2)));
}

Test(cache_miss, lower_error_is_passed_on_and_leaves_nothing)
{
    for (const int error : {-EINVAL, -EACCES, -EFAULT, -ENOSYS, -1234}) {
        CacheFixture f;
        f.lower.refuse(error);
        cr_expect(f.error_of_get(pages(1)) == error);
        cr_expect(f.lower.asked() == 1); // not tried again
        cr_expect(f.source->watched_now() == 0);
        cr_expect(f.statistics().refused_below == 1);
        f.use(pages(1));
        cr_expect(f.hits(pages(1)));
    }
}

Test(cache_miss, lower_error_for_memory_that_is_not_watched_is_passed_on)
{
    CacheFixture f;
    f.source->answer = Watch::SharedKind;
    f.lower.refuse(-EINVAL);
    cr_expect(f.error_of_get(pages(1)) == -EINVAL);
    cr_expect(f.source->wrong() == 0);
}

Test(cache_miss, lower_without_room_gets_idle_regions_and_is_asked_again)
{
    for (const int error : {-ENOMEM, -EAGAIN, -ENOSPC}) {
        CacheFixture f;
        f.lower.full = error;
        f.lower.max_count = 8;
        for (std::size_t i = 0; i < 8; ++i)
            f.use(pages(i));
        f.use(pages(100));
        cr_expect(f.hits(pages(100)));
        cr_expect(f.statistics().evictions >= 1 && f.statistics().evictions <= 2);
        cr_expect(f.statistics().refused_below == 1);
        cr_expect(!f.hits(pages(0))); // the longest idle went
    }
}

Test(cache_miss, lower_without_room_for_bytes_gets_as_many_as_it_takes)
{
    CacheFixture f;
    f.lower.max_bytes = 64 * page_size();
    for (std::size_t i = 0; i < 64; ++i)
        f.use(pages(i));
    f.use(pages(1000, 40));
    cr_expect(f.hits(pages(1000, 40)));
    cr_expect(f.lower.live_bytes() <= f.lower.max_bytes);
}

Test(cache_miss, lower_without_room_and_nothing_idle_is_believed)
{
    CacheFixture f;
    f.lower.max_count = 2;
    f.lower.full = -EAGAIN;
    Region *const a = f.get(pages(1)), *const b = f.get(pages(2));
    cr_expect(f.error_of_get(pages(3)) == -EAGAIN);
    cr_expect(f.source->watched_now() == 2);
    cr_expect(f.get(pages(1)) == a); // what is there still hits
    f.cache->release(a);
    f.cache->release(b);
    f.use(pages(3));
    f.cache->release(a);
}

Test(cache_miss, refusal_that_eviction_does_not_cure_ends)
{
    CacheFixture f;
    for (std::size_t i = 0; i < 20; ++i)
        f.use(pages(i));
    f.lower.refuse(-ENOMEM, 1000);
    cr_expect(f.error_of_get(pages(100)) == -ENOMEM);
    cr_expect(f.lower.live() == 0);
    cr_expect(f.statistics().evictions == 20);
}

// Fail the n-th registration; what comes before and after is as if nothing had happened.
Test(cache_miss, nth_refusal_spoils_nothing_else)
{
    for (std::size_t n = 0; n < 6; ++n) {
        CacheFixture f;
        f.lower.refuse(-EINVAL, 1, n);
        std::size_t failed = 0;
        for (std::size_t i = 0; i < 6; ++i) {
            Region *region = nullptr;
            const Range range = pages(10 * i, i + 1);
            if (f.cache->acquire(range.address(), range.size(), kRead, Match::Anywhere, &region) == 0)
                f.cache->release(region);
            else
                ++failed;
        }
        cr_expect(failed == 1);
        cr_expect(f.lower.live() == 5);
        for (std::size_t i = 0; i < 6; ++i)
            cr_expect(f.hits(pages(10 * i, i + 1)) == (i != n));
    }
}

Test(cache_miss, lower_that_registers_through_the_same_cache_is_served)
{
    CacheFixture f;
    Region *inner = nullptr;
    f.lower.on_register = [&](Range range) {
        if (range == pages(1))
            inner = f.get(pages(7));
    };
    Region *const outer = f.get(pages(1));
    cr_expect(f.hits(pages(1)) && f.hits(pages(7)));
    f.cache->release(outer);
    f.cache->release(inner);
}

// Two threads that miss the same range at once: here the second comes while the first registers.
Test(cache_miss, two_that_register_the_same_range_at_once_are_both_right)
{
    CacheFixture f;
    Region *second = nullptr;
    f.lower.on_register = [&](Range) {
        if (!second) {
            second = reinterpret_cast<Region *>(1); // not again
            second = f.get(pages(1));
        }
    };
    Region *const first = f.get(pages(1));
    cr_expect(first != second);
    cr_expect(f.lower.live() == 2);
    f.cache->release(first);
    f.cache->release(second);
    cr_expect(f.hits(pages(1)));
    f.cache->flush();
    cr_expect(f.lower.live() == 0);
}

Test(cache_miss, too_large_for_the_cache_is_said_once)
{
    const LogLines log;
    CacheFixture f(options_of(100, 4));
    f.use(pages(1, 5));
    f.use(pages(10, 6));
    cr_expect(log.warnings("FI_REGCACHE_MAX_SIZE") == 1 && log.all() == 1, "%s", log.text().c_str());
    cr_expect(f.lower.live() == 0);
    cr_expect(f.statistics().not_admitted == 2);
    f.use(pages(1, 4)); // exactly fits
    cr_expect(f.hits(pages(1, 4)));
}

Test(cache_miss, pinned_bytes_follow_registrations_whether_cached_or_not)
{
    CacheFixture f;
    Region *const cached = f.get(pages(1, 2));
    f.source->answer = Watch::Refused;
    Region *const uncached = f.get(pages(10, 3));
    cr_expect(f.statistics().pinned_bytes == 5 * page_size());
    f.cache->release(uncached);
    f.cache->release(cached);
    cr_expect(f.statistics().pinned_bytes == 2 * page_size());
    cr_expect(f.statistics().most_pinned_bytes == 5 * page_size());
    f.cache->flush();
    cr_expect(f.statistics().pinned_bytes == 0);
}
