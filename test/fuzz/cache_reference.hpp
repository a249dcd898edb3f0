// SPDX-License-Identifier: BSD-2-Clause
// What a cache must do, said as simply as can be: a list of its registrations, looked through from end to end. Knows no
// locks, threads, indices or queues.
#pragma once

#include "cache/cache.hpp"
#include "fuzz/noting_lower.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace regcache::test {

// Whether a registration may be handed out again.
enum class Worth {
    Good,
    Doubtful, // its pages are about to change: it may, and it need not
    Bad,      // never
};

struct ReferenceEntry {
    Noted *registration;
    Worth worth = Worth::Good;
    unsigned users = 1;
    bool is_out = false; // the cache doesn't look at it any more: its last user ends it
};

struct Reference {
    CacheLimits limits;
    Rights ends_with_use = 0;
    std::vector<ReferenceEntry> entries; // registrations that the cache has made and not given back

    static bool serves(const ReferenceEntry &entry, Range request, Rights rights, Match match)
    {
        const Noted &has = *entry.registration;
        return request.begin < request.end && has.range.begin <= request.begin && request.end <= has.range.end &&
               (has.rights & rights) == rights && (match == Match::Anywhere || has.range.begin == request.begin);
    }
    bool has_one_that_serves(Worth worth, Range request, Rights rights, Match match) const
    {
        return std::any_of(entries.begin(), entries.end(), [&](const ReferenceEntry &entry) {
            return entry.worth == worth && serves(entry, request, rights, match);
        });
    }
    ReferenceEntry *find(const void *registration)
    {
        for (ReferenceEntry &entry : entries)
            if (entry.registration == registration)
                return &entry;
        return nullptr;
    }
    // Pages changed, or are about to.
    void change(Range range, Worth left)
    {
        for (ReferenceEntry &entry : entries)
            if (entry.worth < left && entry.registration->range.overlaps(range))
                entry.worth = left;
    }
    // What was about to happen has happened.
    void finish_changes()
    {
        for (ReferenceEntry &entry : entries)
            if (entry.worth == Worth::Doubtful)
                entry.worth = Worth::Bad;
    }
    bool fits_with(std::size_t more_count, std::size_t more_bytes) const
    {
        std::size_t count = more_count, bytes = more_bytes;
        for (const ReferenceEntry &entry : entries)
            if (entry.worth == Worth::Good) {
                ++count;
                bytes += entry.registration->range.size();
            }
        return count <= limits.max_count && bytes <= limits.max_bytes;
    }
};

} // namespace regcache::test
