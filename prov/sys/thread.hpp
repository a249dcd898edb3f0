// SPDX-License-Identifier: BSD-2-Clause
// How a thread of ours lives inside somebody else's program: all signals blocked, a name, a small stack, and forgotten in
// a forked child, where it doesn't exist.
#pragma once

#include <pthread.h>

namespace regcache {

class Thread {
public:
    Thread() noexcept = default;
    Thread(const Thread &) = delete;
    Thread &operator=(const Thread &) = delete;
    ~Thread() { join(); }

    // Runs body(argument), which must not throw. Throws Error when no thread can be had. `name` has at most 15 letters.
    void start(const char *name, void (*body)(void *), void *argument);
    // Waits for its end; nothing if it was never started.
    void join() noexcept;
    // In a forked child: joining would touch a stack that is somebody else's by now.
    void forget() noexcept { is_running_ = false; }
    bool is_running() const noexcept { return is_running_; }
    pthread_t id() const noexcept { return id_; }

private:
    pthread_t id_{};
    bool is_running_ = false;
};

} // namespace regcache
