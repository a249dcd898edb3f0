// SPDX-License-Identifier: BSD-2-Clause
// Is the pin provider safe to use from many threads? A plain program, so that it runs under ThreadSanitizer too: what
// that finds in the cache's stress tests isn't pin's.
#include "support/fabric.hpp"
#include "support/memory.hpp"
#include "support/pin/pin.h"
#include "support/skip.hpp"
#include "support/watchdog.hpp"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

using namespace regcache::test;

namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 3000;

std::atomic<int> failures{0};

void expect(bool is_true, const char *what)
{
    if (is_true)
        return;
    std::fprintf(stderr, "FAILED: %s\n", what);
    ++failures;
}

// Each thread has memory of its own, filled with its own letter, and reads through its registrations.
void churn(const pin_ops *pin, Card &card, int thread)
{
    std::minstd_rand random(static_cast<unsigned>(thread) + 1);
    const Mapping memory(Kind::Private, 16 * page_size());
    const char letter = static_cast<char>('A' + thread);
    memory.fill(letter);
    std::vector<Region> open;
    for (int round = 0; round < kRounds; ++round) {
        if (open.size() == 8)
            open.erase(open.begin() + static_cast<long>(random() % open.size()));
        const std::size_t at = random() % 12 * page_size();
        int error = 0;
        Region region = card.reg(memory.data() + at, (1 + random() % 4) * page_size(), kAllRights, &error);
        if (error) {
            expect(error == -FI_ENOMEM || error == -FI_EAGAIN, "a refusal that wasn't ordered");
            continue;
        }
        char bytes[2] = {};
        expect(pin->read(fi_mr_desc(region.get()), memory.data() + at, bytes, 2) == 2, "read");
        expect(bytes[0] == letter && bytes[1] == letter, "somebody else's bytes");
        pin_region seen;
        expect(pin->look_key(fi_mr_key(region.get()), &seen) == 0 && seen.start == memory.data() + at, "look_key");
        open.push_back(std::move(region));
    }
}

void change_script(const pin_ops *pin, const std::atomic<bool> &is_over)
{
    const pin_rule rule{5, 7, FI_EAGAIN};
    while (!is_over) {
        pin->fail_register(&rule);
        pin->limit(20, 0);
        pin->keys(PIN_KEYS_LOWEST);
        pin_counters counters;
        pin->counters(&counters);
        pin->each([](void *, const pin_region *region) { return region->len == 0 ? 1 : 0; }, nullptr);
        pin->limit(0, 0);
        pin->keys(PIN_KEYS_FRESH);
        pin->fail_register(nullptr);
        std::this_thread::yield();
    }
}

} // namespace

int main()
{
    const Watchdog watchdog("threads over pin", 250);
    const pin_ops *pin = pin_find();
    if (!pin) {
        std::fprintf(stderr, "FAILED: libfabric doesn't load libpin-fi.so from FI_PROVIDER_PATH\n");
        return 1;
    }
    char why[256];
    if (pin->unusable(why, sizeof(why)))
        skip_program(why);
    const Base before = measure_base();
    {
        Card card;
        std::atomic<bool> is_over{false};
        std::thread script([&] { change_script(pin, is_over); });
        std::vector<std::thread> threads;
        for (int thread = 0; thread < kThreads; ++thread)
            threads.emplace_back([&, thread] { churn(pin, card, thread); });
        for (std::thread &thread : threads)
            thread.join();
        is_over = true;
        script.join();
    }
    pin_counters counters;
    pin->counters(&counters);
    expect(counters.live == 0 && counters.objects == 0, "objects are left");
    expect(counters.foreign_fids == 0 && counters.double_closes == 0, "wrong use");
    expect(is_back_at_base(before), "back at base");
    std::printf("%llu registrations, %llu refused\n", static_cast<unsigned long long>(counters.registered),
                static_cast<unsigned long long>(counters.refused));
    return failures == 0 ? 0 : 1;
}
