// SPDX-License-Identifier: BSD-2-Clause
// Starts and joins a thread with all signals blocked.
#include "sys/thread.hpp"

#include "sys/error.hpp"

#include <csignal>
#include <cstddef>
#include <cstring>

namespace regcache {
namespace {

struct Start {
    void (*body)(void *);
    void *argument;
};

void *run(void *start_pointer)
{
    const Start start = *static_cast<Start *>(start_pointer);
    delete static_cast<Start *>(start_pointer);
    start.body(start.argument);
    return nullptr;
}

// Enough for the lower provider's deregistration, which keepers call; little beside the default of 8 MiB.
constexpr std::size_t kStackBytes = 512 * 1024;

} // namespace

void Thread::start(const char *name, void (*body)(void *), void *argument)
{
    auto *const start = new Start{body, argument};
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStackBytes);
    // The thread inherits the mask: a signal handler of the application must never run on it.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&id_, &attributes, run, start);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_attr_destroy(&attributes);
    if (error != 0) {
        delete start;
        throw Error(error, std::string("can't start the thread ") + name + ": " + std::strerror(error));
    }
    pthread_setname_np(id_, name);
    is_running_ = true;
}

void Thread::join() noexcept
{
    if (is_running_)
        pthread_join(id_, nullptr);
    is_running_ = false;
}

} // namespace regcache
