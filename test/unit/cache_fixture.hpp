// SPDX-License-Identifier: BSD-2-Clause
// A cache between a scripted source and a scripted lower provider. The addresses are made up: nobody looks at memory.
#pragma once

#include "support/eventually.hpp"
#include "support/log_lines.hpp"
#include "support/scripted_lower.hpp"
#include "support/scripted_source.hpp"

#include "cache/cache.hpp"

#include <cstdlib>
#include <memory>
#include <optional>

#include <criterion/criterion.h>

namespace regcache::test {

inline constexpr Rights kRead = 1, kWrite = 2, kRemoteRead = 4, kRemoteWrite = 8;

// Page number `first` of an address space of the test's own, and `count` pages of it.
inline Range pages(std::size_t first, std::size_t count = 1)
{
    const std::uintptr_t begin = (0x10'0000 + first) * page_size();
    return {begin, begin + count * page_size()};
}

inline CacheOptions options_of(std::size_t max_count = SIZE_MAX, std::size_t max_pages = 0)
{
    CacheOptions options;
    options.name = "fixture";
    options.limits.max_count = max_count;
    if (max_pages != 0)
        options.limits.max_bytes = max_pages * page_size();
    return options;
}

struct CacheFixture {
    explicit CacheFixture(const CacheOptions &options = options_of())
    {
        cache.emplace(options, source, lower);
        // The keeper's first round is behind us: from here on it does nothing until somebody rings.
        cr_assert(eventually([&] { return source->looks() != 0; }));
        looks_at_start = source->looks();
    }
    ~CacheFixture()
    {
        cache.reset();
        cr_expect(source->watched_now() == 0, "%zu ranges are watched after the end", source->watched_now());
        cr_expect(source->wrong() == 0 && lower.wrong() == 0, "something was given back twice");
        cr_expect(lower.live() == lower_keeps, "%zu registrations after the end", lower.live());
    }

    Region *get(Range range, Rights rights = kRead, Match match = Match::Anywhere)
    {
        Region *region = nullptr;
        const int error = cache->acquire(range.address(), range.size(), rights, match, &region);
        cr_assert(error == 0, "acquire() says %d", error);
        cr_assert(region->range.contains(range));
        cr_assert(covers(region->rights, rights));
        cr_assert(registration_of(*region).is_live && registration_of(*region).range == region->range &&
                  registration_of(*region).rights == region->rights);
        return region;
    }
    int error_of_get(Range range, Rights rights = kRead)
    {
        Region *region = nullptr;
        return cache->acquire(range.address(), range.size(), rights, Match::Anywhere, &region);
    }
    // Acquires and releases.
    void use(Range range, Rights rights = kRead) { cache->release(get(range, rights)); }
    // Whether a request is a hit; the region is released again.
    bool hits(Range range, Rights rights = kRead, Match match = Match::Anywhere)
    {
        const std::uint64_t before = statistics().hits;
        cache->release(get(range, rights, match));
        return statistics().hits != before;
    }
    StatisticsSnapshot statistics() const { return cache->statistics(); }
    // Wakes the keeper and waits for what it gives back.
    bool keeper_leaves(std::size_t live)
    {
        source->ring();
        return eventually([&] { return lower.live() == live; });
    }

    std::shared_ptr<ScriptedSource> source = std::make_shared<ScriptedSource>();
    ScriptedLower lower;
    std::optional<Cache> cache;
    std::size_t lower_keeps = 0; // registrations that may be left at the end
    std::size_t looks_at_start = 0;
};

} // namespace regcache::test
