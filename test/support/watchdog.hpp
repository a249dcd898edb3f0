// SPDX-License-Identifier: BSD-2-Clause
// Ends a test that hangs, with a line that says which. Not a measure of speed: limits are generous.
#pragma once

#include "support/base.hpp"

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>

namespace regcache::test {

// Aborts the process unless it is destroyed within `limit_s` x patience() seconds. A thread and not a signal: a thread that
// waits in the kernel for a reader of userfaultfd runs no signal handler.
class Watchdog {
public:
    explicit Watchdog(std::string what, unsigned limit_s = 120)
        : what_(std::move(what)), limit_s_(limit_s * patience()), thread_([this] { watch(); })
    {
    }
    ~Watchdog()
    {
        {
            const std::lock_guard lock(mutex_);
            is_over_ = true;
        }
        over_.notify_one();
        thread_.join();
    }
    Watchdog(const Watchdog &) = delete;
    Watchdog &operator=(const Watchdog &) = delete;

private:
    void watch()
    {
        std::unique_lock lock(mutex_);
        if (over_.wait_for(lock, std::chrono::seconds(limit_s_), [this] { return is_over_; }))
            return;
        std::fprintf(stderr, "watchdog: %s isn't over after %u s\n", what_.c_str(), limit_s_);
        std::abort();
    }

    std::string what_;
    unsigned limit_s_;
    std::mutex mutex_;
    std::condition_variable over_;
    bool is_over_ = false;
    std::thread thread_; // last: it uses the others
};

} // namespace regcache::test
