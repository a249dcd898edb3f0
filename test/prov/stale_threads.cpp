// SPDX-License-Identifier: BSD-2-Clause
// Is an address that one thread gives away and another takes ever served by its old pages? All by fi_* calls; the same with
// threads put where it hurts most, and a control, is test/stress/reuse.
#include "prov/same_address.hpp"
#include "support/watchdog.hpp"

#include <atomic>
#include <climits>
#include <random>
#include <thread>
#include <vector>

#include <criterion/criterion.h>

using namespace regcache::test;

TestSuite(stale_threads, .init = need_pin);

Test(stale_threads, never_when_one_unmaps_and_another_maps)
{
    const Watchdog watchdog("one unmaps, another maps");
    Card card(over_pin());
    const int wrong = stale_rounds_of_two_threads(card, sanitizer() ? 500 : 5000, INT_MAX);
    cr_expect(wrong == 0, "%d rounds saw old pages", wrong);
}

// Threads that take addresses from one pool recycle each other's.
Test(stale_threads, never_when_threads_recycle_each_other_s_addresses)
{
    const Watchdog watchdog("threads that recycle addresses");
    constexpr int kThreads = 4;
    const int rounds = sanitizer() ? 200 : 1500;
    Card card(over_pin());
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int id = 0; id < kThreads; ++id)
        threads.emplace_back([&, id] {
            std::minstd_rand random(static_cast<unsigned>(id) + 1);
            for (int round = 0; round < rounds; ++round) {
                // Anywhere: the kernel gives out again what another thread has just unmapped.
                const Mapping memory(Kind::Private, (1 + random() % 4) * page_size());
                const char letter = static_cast<char>('A' + (id * 7 + round) % 26);
                memory.fill(letter);
                for (int use = 0; use < 3; ++use) {
                    const std::size_t at = random() % memory.size();
                    const Region region = card.reg(memory.data() + at, memory.size() - at);
                    wrong += !region || seen(region, memory.data() + at) != letter;
                }
            }
        });
    for (std::thread &thread : threads)
        thread.join();
    cr_expect(wrong == 0, "%d registrations saw old pages", wrong.load());
    cr_expect(eventually([] { return pin_count().live == 0; }), "what was freed is given back");
}

// Some threads have a handle open while others change parts of the same memory, within what each may do to its own part.
Test(stale_threads, never_beside_changes_of_the_rest_of_a_registration)
{
    const Watchdog watchdog("changes of the rest");
    constexpr std::size_t kParts = 4;
    const int rounds = sanitizer() ? 100 : 1000;
    Card card(over_pin());
    const Mapping memory = replaceable(Kind::Private, kParts * 2 * page_size());
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (std::size_t part = 0; part < kParts; ++part)
        threads.emplace_back([&, part] {
            char *const own = memory.data() + part * 2 * page_size();
            for (int round = 0; round < rounds; ++round) {
                const char letter = static_cast<char>('A' + round % 26);
                own[0] = own[page_size()] = letter;
                // A registration over everybody's pages, of which only our own are looked at.
                const Region region = card.reg(memory.data(), memory.size());
                wrong += !region || seen(region, own) != letter || seen(region, own + page_size()) != letter;
                if (round % 3 != 0)
                    continue;
                wrong += madvise(own, 2 * page_size(), MADV_DONTNEED) != 0;
            }
        });
    for (std::thread &thread : threads)
        thread.join();
    cr_expect(wrong == 0, "%d registrations saw old pages", wrong.load());
}
