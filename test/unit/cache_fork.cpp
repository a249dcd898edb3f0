// SPDX-License-Identifier: BSD-2-Clause
// What a cache does about forks (cache/housekeeping.cpp): the parent goes on, the child has a cache that is off.
#include "support/child.hpp"
#include "support/skip.hpp"
#include "unit/cache_fixture.hpp"

#include "vm/none.hpp"

#include <thread>
#include <vector>

using namespace regcache;
using namespace regcache::test;

namespace {

// The keeper is a thread.
void need_fork()
{
    skip_under_sanitizer("a child of a process with threads may hang in its allocator");
}

// Takes no lock, so that a child of a busy parent can call it.
class AnyLower final : public Lower {
public:
    int register_range(Range, Rights, void **registration) noexcept override
    {
        *registration = this;
        return 0;
    }
    int deregister(void *) noexcept override { return 0; }
};

class AnySource final : public Source {
public:
    const char *name() const noexcept override { return "any"; }
    Watch watch(WatchedRange &) noexcept override { return Watch::Watched; }
    void unwatch(WatchedRange &) noexcept override {}
    std::uint64_t position() noexcept override { return 0; }
};

int use(Cache &cache, Range range)
{
    Region *region = nullptr;
    const int error = cache.acquire(range.address(), range.size(), kRead, Match::Anywhere, &region);
    if (error == 0)
        cache.release(region);
    return error;
}

} // namespace

TestSuite(cache_fork, .init = need_fork);

Test(cache_fork, child_registers_below_and_keeps_nothing)
{
    CacheFixture f;
    f.use(pages(1));
    const int status = status_of_child([&] {
        for (int i = 0; i < 3; ++i)
            if (use(*f.cache, pages(1)) != 0)
                return 1;
        const bool is_right = f.lower.made() == 4 && f.lower.live() == 1 && f.statistics().hits == 0 &&
                              f.source->watched_now() == 1;
        return is_right ? 0 : 2;
    });
    cr_expect(status == 0, "status %d", status);
    cr_expect(f.hits(pages(1)));
}

Test(cache_fork, child_leaves_inherited_regions_alone)
{
    CacheFixture f;
    Region *const region = f.get(pages(1));
    const int status = status_of_child([&] {
        f.cache->release(region);
        f.cache->flush();
        f.cache->stop();
        f.cache.reset();
        return f.lower.live() == 1 && f.source->watched_now() == 1 && !f.source->is_stopped ? 0 : 1;
    });
    cr_expect(status == 0, "status %d", status);
    f.cache->release(region);
    cr_expect(f.hits(pages(1)));
}

Test(cache_fork, child_may_have_a_cache_of_its_own)
{
    CacheFixture f;
    f.use(pages(1));
    const int status = status_of_child([&] {
        const auto source = std::make_shared<ScriptedSource>();
        ScriptedLower lower;
        Cache own(options_of(), source, lower);
        if (use(own, pages(1)) != 0 || use(own, pages(1)) != 0 || own.statistics().hits != 1)
            return 1;
        source->tell(pages(1));
        source->ring();
        return eventually([&] { return lower.live() == 0; }) ? 0 : 2; // its keeper works
    });
    cr_expect(status == 0, "status %d", status);
}

Test(cache_fork, child_of_a_child_is_as_good)
{
    CacheFixture f;
    f.use(pages(1));
    const int status = status_of_child([&] {
        return status_of_child([&] { return use(*f.cache, pages(1)) == 0 && f.lower.live() == 1 ? 0 : 1; });
    });
    cr_expect(status == 0, "status %d", status);
}

Test(cache_fork, parents_keeper_goes_on)
{
    CacheFixture f;
    f.use(pages(1));
    cr_expect(status_of_child([] { return 0; }) == 0);
    f.source->tell(pages(1));
    cr_expect(f.keeper_leaves(0));
}

Test(cache_fork, region_made_by_the_child_is_ended_by_the_child)
{
    CacheFixture f;
    const int status = status_of_child([&] {
        Region *region = nullptr;
        if (f.cache->acquire(pages(5).address(), 10, kRead, Match::Anywhere, &region) != 0 || f.lower.live() != 1)
            return 1;
        f.cache->release(region);
        return f.lower.live() == 0 ? 0 : 2;
    });
    cr_expect(status == 0, "status %d", status);
}

// A thread that has the lock while another one forks would leave it locked in the child for ever.
Test(cache_fork, child_of_a_busy_process_finds_no_lock_held)
{
    AnyLower lower;
    const auto source = std::make_shared<AnySource>();
    Cache first(options_of(4), source, lower), second(options_of(4), source, lower);
    std::atomic<bool> is_over{false};
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (std::size_t i = t; !is_over; ++i)
                use(t % 2 == 0 ? first : second, pages(i % 9));
        });
    int bad = 0;
    for (int round = 0; round < 100 && bad == 0; ++round)
        bad = status_of_child([&] { return use(first, pages(1)) | use(second, pages(1)); });
    is_over = true;
    for (std::thread &thread : threads)
        thread.join();
    cr_expect(bad == 0, "status %d", bad);
}
