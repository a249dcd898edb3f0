// SPDX-License-Identifier: BSD-2-Clause
// Who is told of a fork: objects that own threads, descriptors or locks. Doesn't know what they do about it.
#pragma once

namespace regcache {

// Told in the order of their registration before a fork, in the opposite order after it. The calls run on the thread that
// forks; in the child only that thread is left. They may take locks before and release them after; the child's call
// allocates nothing.
class ForkListener {
public:
    virtual void before_fork() noexcept = 0;
    virtual void after_fork_in_parent() noexcept = 0;
    virtual void after_fork_in_child() noexcept = 0;

protected:
    virtual ~ForkListener() = default;

private:
    friend class ForkRegistry;
    ForkListener *previous_ = nullptr;
    ForkListener *next_ = nullptr;
};

// Any thread. A listener is added once it is complete and removed before any part of it goes.
void add_fork_listener(ForkListener &listener) noexcept;
void remove_fork_listener(ForkListener &listener) noexcept;

// How many forks lie between this process and the one that loaded the library, once any listener was added: differs in a
// child from what its parent saw.
unsigned fork_generation() noexcept;

} // namespace regcache
