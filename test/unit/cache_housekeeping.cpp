// SPDX-License-Identifier: BSD-2-Clause
// cache/housekeeping.cpp: what happens while the application calls nothing, and how a cache begins and ends. What it does
// about forks is in cache_fork.cpp.
#include "unit/cache_fixture.hpp"

#include <thread>

using namespace regcache;
using namespace regcache::test;

Test(cache_housekeeping, freed_memory_is_unpinned_without_a_further_call)
{
    CacheFixture f;
    for (std::size_t i = 0; i < 100; ++i)
        f.use(pages(2 * i));
    for (std::size_t i = 0; i < 100; i += 2)
        f.source->tell(pages(2 * i));
    cr_expect(f.keeper_leaves(50));
    cr_expect(eventually([&] { return f.statistics().pinned_bytes == 50 * page_size(); }));
}

Test(cache_housekeeping, many_rounds_leave_nothing_behind)
{
    CacheFixture f;
    for (std::size_t i = 0; i < 1000; ++i) {
        f.use(pages(i));
        f.source->tell(pages(i));
        f.source->ring();
    }
    cr_expect(eventually([&] { return f.lower.live() == 0; }));
}

Test(cache_housekeeping, keeper_looks_by_itself_where_nobody_rings)
{
    const auto source = std::make_shared<ScriptedSource>();
    source->looks_every_ms = 1;
    ScriptedLower lower;
    Cache cache(options_of(), source, lower);
    Region *region = nullptr;
    cr_assert(cache.acquire(pages(1).address(), page_size(), kRead, Match::Anywhere, &region) == 0);
    cache.release(region);
    source->tell(pages(1));
    cr_expect(eventually([&] { return lower.live() == 0; }));
}

Test(cache_housekeeping, keeper_has_a_name_and_ends_with_the_cache)
{
    const Base before = measure_base();
    {
        CacheFixture f;
        cr_expect(measure_base().threads == before.threads + 1);
    }
    cr_expect(is_back_at_base(before));
}

Test(cache_housekeeping, end_of_a_cache_gives_back_idle_and_stale_regions)
{
    CacheFixture f;
    for (std::size_t i = 0; i < 10; ++i)
        f.use(pages(2 * i));
    f.source->tell(pages(4));
    f.use(pages(100));
    f.cache.reset();
    cr_expect(f.lower.live() == 0);
    cr_expect(f.source->watched_now() == 0);
}

Test(cache_housekeeping, flush_forgets_what_nobody_uses)
{
    CacheFixture f;
    Region *const in_use = f.get(pages(1));
    f.use(pages(2));
    f.use(pages(3));
    f.source->tell(pages(3));
    f.cache->flush();
    cr_expect(f.lower.live() == 1);
    cr_expect(f.get(pages(1)) == in_use);
    f.cache->release(in_use);
    f.cache->release(in_use);
    f.cache->flush();
    cr_expect(f.lower.live() == 0);
    f.cache->flush();
    f.use(pages(1));
    cr_expect(f.hits(pages(1)));
}

// Memory limits and rights of the pages may be changed after flush() has returned.
Test(cache_housekeeping, flush_waits_for_what_the_keeper_is_giving_back)
{
    CacheFixture f;
    f.use(pages(1));
    std::atomic<bool> is_in_keeper{false}, may_go_on{false}, is_over{false};
    f.lower.on_deregister = [&](Range) {
        is_in_keeper = true;
        cr_expect(eventually([&] { return may_go_on.load(); }));
        is_over = true;
    };
    f.source->tell(pages(1));
    f.source->ring();
    cr_assert(eventually([&] { return is_in_keeper.load(); }));
    bool was_over = false;
    std::thread flusher([&] {
        f.cache->flush();
        was_over = is_over;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20)); // for a flush() that doesn't wait to be seen
    may_go_on = true;
    flusher.join();
    cr_expect(was_over);
}

Test(cache_housekeeping, cache_begins_with_the_events_that_come_after_it)
{
    const auto source = std::make_shared<ScriptedSource>();
    for (std::size_t i = 0; i < 10; ++i)
        source->tell(pages(i));
    source->overflow();
    CacheFixture f;
    f.cache.reset();
    f.cache.emplace(options_of(), source, f.lower);
    f.use(pages(1));
    cr_expect(f.hits(pages(1)));
    cr_expect(f.statistics().events == 0 && f.statistics().lost == 0);
}

Test(cache_housekeeping, caches_of_one_source_hear_the_same_events)
{
    CacheFixture f;
    ScriptedLower other_lower;
    Cache other(options_of(), f.source, other_lower);
    const auto use_other = [&] {
        Region *region = nullptr;
        cr_assert(other.acquire(pages(1).address(), page_size(), kRead, Match::Anywhere, &region) == 0);
        other.release(region);
    };
    use_other();
    f.use(pages(1));
    cr_expect(f.source->watched_now() == 2);
    f.source->tell(pages(1));
    cr_expect(!f.hits(pages(1)));
    use_other();
    cr_expect(other.statistics().hits == 0);
    cr_expect(other.statistics().invalidations == 1);
    // One that leaves doesn't silence the other.
    other.flush();
    cr_expect(f.source->watches(pages(1)));
    f.source->tell(pages(1));
    cr_expect(!f.hits(pages(1)));
}

// Never destroyed: what the process leaves behind at its end.
Test(cache_housekeeping, stopped_cache_keeps_nothing_and_leaves_what_is_there)
{
    static CacheFixture &f = *new CacheFixture;
    Region *const in_use = f.get(pages(1));
    f.use(pages(2));
    f.cache->stop();
    cr_expect(f.source->is_stopped);
    f.cache->release(in_use);
    cr_expect(f.lower.live() == 2);
    Region *const late = f.get(pages(3));
    cr_expect(f.lower.live() == 3);
    f.cache->release(late);
    cr_expect(f.lower.live() == 2);
    cr_expect(f.statistics().hits == 0);
    f.cache->flush();
    f.cache->stop();
    cr_expect(f.lower.live() == 2);
    cr_expect(f.source->watched_now() == 2);
    f.lower.refuse(-ENOMEM);
    cr_expect(f.error_of_get(pages(2)) == -ENOMEM);
    cr_expect(f.lower.live() == 2);
}

Test(cache_housekeeping, stopped_cache_can_be_destroyed)
{
    const Base before = measure_base();
    {
        CacheFixture f;
        f.use(pages(1));
        f.cache->flush();
        f.cache->stop();
    }
    cr_expect(is_back_at_base(before));
}
