// SPDX-License-Identifier: BSD-2-Clause
// sys/thread.hpp: how a thread of ours lives inside somebody else's program.
#include "sys/thread.hpp"

#include "support/base.hpp"
#include "support/skip.hpp"
#include "sys/error.hpp"

#include <sys/resource.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <string>

#include <criterion/criterion.h>

using namespace regcache;
using namespace regcache::test;

namespace {

struct Seen {
    char name[16] = "";
    sigset_t blocked;
    std::size_t stack_bytes = 0;
};

void look_around(void *argument)
{
    auto &seen = *static_cast<Seen *>(argument);
    // The name is set by who starts it, a moment later.
    for (int i = 0; i < 100'000 && std::strcmp(seen.name, "regcache-unit") != 0; ++i)
        pthread_getname_np(pthread_self(), seen.name, sizeof seen.name);
    pthread_sigmask(SIG_SETMASK, nullptr, &seen.blocked);
    pthread_attr_t attributes;
    void *stack = nullptr;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &stack, &seen.stack_bytes);
    pthread_attr_destroy(&attributes);
}

} // namespace

Test(thread, has_a_name_a_small_stack_and_no_signals)
{
    sigset_t before, after;
    pthread_sigmask(SIG_SETMASK, nullptr, &before);
    Seen seen;
    Thread thread;
    thread.start("regcache-unit", look_around, &seen);
    cr_expect(thread.is_running());
    thread.join();
    cr_expect(!thread.is_running());
    cr_expect(std::strcmp(seen.name, "regcache-unit") == 0);
    for (const int signal : {SIGINT, SIGTERM, SIGALRM, SIGUSR1, SIGPROF, SIGSEGV})
        cr_expect(sigismember(&seen.blocked, signal) == 1, "signal %d isn't blocked", signal);
    cr_expect(seen.stack_bytes <= std::size_t{2} << 20);
    // Who started it has the mask that it had.
    pthread_sigmask(SIG_SETMASK, nullptr, &after);
    for (int signal = 1; signal < 32; ++signal)
        cr_expect(sigismember(&before, signal) == sigismember(&after, signal));
}

Test(thread, ends_with_its_owner)
{
    const Base before = measure_base();
    {
        Seen seen;
        Thread thread;
        thread.start("regcache-unit", look_around, &seen);
    }
    cr_expect(is_back_at_base(before));
}

Test(thread, that_never_started_can_be_joined)
{
    Thread thread;
    thread.join();
    thread.join();
    cr_expect(!thread.is_running());
}

Test(thread, that_is_forgotten_is_not_joined)
{
    Seen seen;
    Thread thread;
    thread.start("regcache-unit", look_around, &seen);
    const pthread_t id = thread.id();
    thread.forget();
    thread.join();
    cr_expect(!thread.is_running());
    cr_expect(pthread_join(id, nullptr) == 0); // nobody did it before
}

Test(thread, that_cannot_be_had_says_why)
{
    skip_under_sanitizer("its run time needs the address space that the test takes away");
    const rlimit none{1 << 20, RLIM_INFINITY};
    cr_assert(setrlimit(RLIMIT_AS, &none) == 0);
    Thread thread;
    try {
        thread.start("regcache-unit", look_around, nullptr);
        cr_assert(false, "a thread was had");
    } catch (const Error &error) {
        cr_expect(error.code() == EAGAIN);
        cr_expect(std::string(error.what()).find("regcache-unit") != std::string::npos);
    }
    cr_expect(!thread.is_running());
}
