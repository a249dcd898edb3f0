// SPDX-License-Identifier: BSD-2-Clause
// Who unpins memory that was freed while the application calls nothing: one thread for each cache.
#pragma once

#include "sys/bell.hpp"
#include "sys/thread.hpp"

namespace regcache {

class Cache;

// Sleeps until the source has pushed events or somebody rings; then lets the cache keep house. After each round it rests
// for kRestMs, so that a storm of events costs one wake-up for many of them.
class Keeper {
public:
    static constexpr unsigned kRestMs = 2;

    // `bell` is the one that the event source rings; it is looked at every `look_every_ms` in any case.
    Keeper(Cache &cache, Bell &bell, unsigned look_every_ms) noexcept
        : cache_(cache), bell_(bell), look_every_ms_(look_every_ms)
    {
    }

    void start(); // throws Error
    // Ends the thread and waits for it.
    void stop() noexcept;
    void forget() noexcept { thread_.forget(); }

private:
    void run() noexcept;

    Cache &cache_;
    Bell &bell_;
    const unsigned look_every_ms_;
    Bell stop_bell_;
    Atomic<bool> is_stopping_{false};
    Thread thread_;
};

} // namespace regcache
