// SPDX-License-Identifier: BSD-2-Clause
// Plays a sequence of operations on a cache and on its reference, and ends the program at the first difference. Bytes say
// which operations: random ones in test/model/random_sequences, libFuzzer's in test/fuzz/cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace regcache::test {

struct PlayOptions {
    bool may_fork = false;
    bool tells_steps = false; // each on a line of its own, to follow a sequence that failed
};

// How often what happened.
struct Played {
    std::uint64_t steps = 0, hits = 0, misses = 0, refused = 0, evicted = 0, overtaken = 0, not_admitted = 0, unconfirmed = 0,
                  uncacheable = 0, invalidated = 0, lost = 0, forks = 0;

    Played &operator+=(const Played &other);
};
std::string text_of(const Played &played);

Played play_on_cache(const std::uint8_t *bytes, std::size_t count, const PlayOptions &options = {});

} // namespace regcache::test
