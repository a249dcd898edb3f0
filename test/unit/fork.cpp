// SPDX-License-Identifier: BSD-2-Clause
// sys/fork.hpp: who is told of a fork, and in which order. Nothing here has threads, so sanitized builds run it too, but
// for the last.
#include "sys/fork.hpp"

#include "support/child.hpp"
#include "support/skip.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <criterion/criterion.h>

using namespace regcache;
using namespace regcache::test;

namespace {

std::string told; // letters: lower case before, upper case in the parent, a digit in the child

class Listener final : public ForkListener {
public:
    explicit Listener(char letter) : letter_(letter) { add_fork_listener(*this); }
    ~Listener() override { remove_fork_listener(*this); }

private:
    void before_fork() noexcept override { told += letter_; }
    void after_fork_in_parent() noexcept override { told += static_cast<char>(letter_ - 'a' + 'A'); }
    void after_fork_in_child() noexcept override { told += static_cast<char>(letter_ - 'a' + '1'); }

    const char letter_;
};

// What the child was told, compared in the child.
bool child_is_told(const std::string &expected)
{
    told.clear();
    return status_of_child([&] { return told == expected ? 0 : 1; }) == 0;
}

} // namespace

Test(fork, listeners_are_told_in_order_and_backwards_after)
{
    const Listener a('a'), b('b'), c('c');
    cr_expect(child_is_told("abc321"));
    cr_expect(told == "abcCBA");
}

Test(fork, first_middle_and_last_can_leave)
{
    auto a = std::make_unique<Listener>('a'), b = std::make_unique<Listener>('b'), c = std::make_unique<Listener>('c'),
         d = std::make_unique<Listener>('d');
    c.reset();
    cr_expect(child_is_told("abd421"));
    a.reset();
    cr_expect(child_is_told("bd42"));
    d.reset();
    cr_expect(child_is_told("b2"));
    const Listener e('e');
    cr_expect(child_is_told("be52"));
    b.reset();
    cr_expect(child_is_told("e5"));
    cr_expect(told == "eE");
}

Test(fork, nobody_is_told_twice_after_coming_back)
{
    for (int i = 0; i < 3; ++i)
        const Listener again('a');
    const Listener a('a');
    cr_expect(child_is_told("a1"));
}

Test(fork, generation_differs_in_the_child_alone)
{
    const Listener a('a');
    const unsigned mine = fork_generation();
    const int status = status_of_child([&] {
        if (fork_generation() != mine + 1)
            return 1;
        return status_of_child([&] { return fork_generation() == mine + 2 ? 0 : 2; });
    });
    cr_expect(status == 0, "status %d", status);
    cr_expect(fork_generation() == mine);
}

Test(fork, child_can_add_and_remove_listeners)
{
    auto a = std::make_unique<Listener>('a');
    const int status = status_of_child([&] {
        a.reset();
        const Listener b('b');
        return child_is_told("b2") ? 0 : 1;
    });
    cr_expect(status == 0, "status %d", status);
}

Test(fork, threads_that_add_and_remove_do_not_break_the_list)
{
    skip_under_sanitizer("a child of a process with threads may hang in its allocator");
    class Silent final : public ForkListener {
    public:
        Silent() { add_fork_listener(*this); }
        ~Silent() override { remove_fork_listener(*this); }

    private:
        void before_fork() noexcept override {}
        void after_fork_in_parent() noexcept override {}
        void after_fork_in_child() noexcept override {}
    };
    std::atomic<bool> is_over{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
        threads.emplace_back([&] {
            while (!is_over)
                const Silent one, two;
        });
    int bad = 0;
    for (int round = 0; round < 100 && bad == 0; ++round)
        bad = status_of_child([] {
            const Silent own;
            return 0;
        });
    is_over = true;
    for (std::thread &thread : threads)
        thread.join();
    cr_expect(bad == 0, "status %d", bad);
}
