// SPDX-License-Identifier: BSD-2-Clause
// sys/bell.hpp: no ring is missed.
#include "sys/bell.hpp"

#include "support/eventually.hpp"

#include <atomic>
#include <thread>
#include <vector>

#include <criterion/criterion.h>

using namespace regcache;
using namespace regcache::test;

namespace {

constexpr unsigned kLongMs = 200'000; // a missed ring hangs the test

} // namespace

Test(bell, ring_between_looking_and_sleeping_is_not_missed)
{
    Bell bell;
    for (int i = 0; i < 1000; ++i) {
        const auto seen = bell.rings();
        bell.ring();
        bell.wait(seen, kLongMs);
    }
    cr_expect(bell.rings() == 1000);
}

Test(bell, sleep_ends_without_a_ring)
{
    Bell bell;
    const std::uint64_t before = now_ns();
    while (now_ns() - before < 5'000'000) // it may return early, so again and again
        bell.wait(bell.rings(), 1);
    cr_expect(bell.rings() == 0);
}

Test(bell, every_sleeper_is_woken)
{
    Bell bell;
    std::atomic<int> awake{0};
    std::vector<std::thread> sleepers;
    const auto seen = bell.rings();
    for (int i = 0; i < 4; ++i)
        sleepers.emplace_back([&] {
            bell.wait(seen, kLongMs);
            ++awake;
        });
    bell.ring();
    for (std::thread &sleeper : sleepers)
        sleeper.join();
    cr_expect(awake == 4);
}

Test(bell, two_that_ring_each_other_never_stop)
{
    Bell bells[2];
    std::atomic<int> turns[2] = {0, 0};
    constexpr int kTurns = 5000;
    const auto play = [&](int mine, int other) {
        for (int turn = 0; turn < kTurns; ++turn) {
            bells[other].ring();
            ++turns[mine];
            for (auto seen = bells[mine].rings(); turns[other] <= turn; seen = bells[mine].rings())
                if (turns[other] <= turn)
                    bells[mine].wait(seen, 10); // the other rings before it counts: short sleeps
        }
    };
    std::thread second([&] { play(1, 0); });
    play(0, 1);
    second.join();
    cr_expect(turns[0] == kTurns && turns[1] == kTurns);
}

Test(bell, clock_does_not_go_back)
{
    std::uint64_t last = now_ns();
    for (int i = 0; i < 1000; ++i) {
        const std::uint64_t now = now_ns();
        cr_assert(now >= last);
        last = now;
    }
}
