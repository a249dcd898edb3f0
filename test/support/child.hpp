// SPDX-License-Identifier: BSD-2-Clause
// A forked child that does something and ends, however badly that goes. Doesn't make fork safe: see skip_under_sanitizer.
#pragma once

#include "support/base.hpp"

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace regcache::test {

// What body() returned in the child, or 256 + the signal that ended the child. In a child of a process with threads only
// what is safe there may be done. The alarm ends a child that hangs.
template <class Body>
int status_of_child(Body body)
{
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        alarm(100 * patience());
        _exit(body());
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFSIGNALED(status) ? 256 + WTERMSIG(status) : WEXITSTATUS(status);
}

// A child that waits until it is told to end, as one does that forks and never execs.
class IdleChild {
public:
    IdleChild()
    {
        if (pipe(ends_) != 0)
            return;
        std::fflush(nullptr);
        child_ = fork();
        if (child_ == 0) {
            close(ends_[1]);
            alarm(250 * patience());
            char byte;
            while (read(ends_[0], &byte, 1) < 0 && errno == EINTR) {
            }
            _exit(0);
        }
    }
    ~IdleChild()
    {
        close(ends_[0]);
        close(ends_[1]); // its read ends
        int status = 0;
        while (child_ > 0 && waitpid(child_, &status, 0) < 0 && errno == EINTR) {
        }
    }
    IdleChild(const IdleChild &) = delete;
    IdleChild &operator=(const IdleChild &) = delete;

    bool is_there() const { return child_ > 0 && waitpid(child_, nullptr, WNOHANG) == 0; }

private:
    int ends_[2] = {-1, -1};
    pid_t child_ = -1;
};

} // namespace regcache::test
