// SPDX-License-Identifier: BSD-2-Clause
// A lower provider does what it likes while it registers and deregisters: it allocates, frees, unmaps memory that is watched,
// takes locks that others hold while they unmap. Nothing may wait for itself.
#include "prov/changes.hpp"
#include "prov/over_pin.hpp"
#include "support/watchdog.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <criterion/criterion.h>

using namespace regcache::test;

namespace {

// Pin's hook runs `body` at every moment, as long as this lives; not within itself.
class Hook {
public:
    using Body = std::function<void(pin_moment, const void *start, std::size_t len)>;

    explicit Hook(Body body) : body_(std::move(body))
    {
        pin->hook(
            [](void *self, pin_moment moment, const void *start, std::size_t len) {
                static_cast<Hook *>(self)->call(moment, start, len);
                return 0;
            },
            this);
    }
    ~Hook()
    {
        pin->hook(nullptr, nullptr);
        while (running_.load() != 0) // a call that has begun on another thread
            std::this_thread::yield();
    }
    Hook(const Hook &) = delete;
    Hook &operator=(const Hook &) = delete;

    int calls() const { return calls_.load(); }

private:
    void call(pin_moment moment, const void *start, std::size_t len)
    {
        static thread_local bool is_inside = false;
        if (is_inside)
            return;
        is_inside = true;
        ++running_;
        body_(moment, start, len);
        ++calls_;
        --running_;
        is_inside = false;
    }

    Body body_;
    std::atomic<int> running_{0}, calls_{0};
};

// Registers, hits, unmaps and registers again; false if the card saw anything wrong.
bool work(Card &card, int rounds)
{
    bool is_right = true;
    for (int round = 0; round < rounds; ++round) {
        Mapping memory(Kind::Private, 4 * page_size());
        memory.fill('A');
        for (int i = 0; i < 2; ++i) {
            const Region region = card.reg(memory.data(), memory.size());
            is_right = is_right && region && seen(region, memory.data()) == 'A';
        }
        is_right = is_right && replace_in_place(memory.data(), memory.size());
        memory.fill('B');
        const Region region = card.reg(memory.data() + page_size(), page_size());
        is_right = is_right && region && seen(region, memory.data() + page_size()) == 'B';
    }
    return is_right;
}

} // namespace

TestSuite(hooks, .init = need_pin);

Test(hooks, that_allocate_and_free)
{
    const Watchdog watchdog("hooks that allocate");
    Card card(over_pin());
    {
        // Blocks that malloc maps by themselves: freeing one unmaps it, and its memory was registered.
        const Hook hook([&](pin_moment, const void *, std::size_t) {
            const std::size_t bytes = 1 << 20;
            auto *const block = static_cast<char *>(std::malloc(bytes));
            std::memset(block, 'H', bytes);
            cr_expect(card.reg(block, bytes));
            std::free(block);
        });
        cr_expect(work(card, 30));
        cr_expect(hook.calls() > 100);
    }
    cr_expect(card.close() == 0);
    expect_pin_is_empty();
}

Test(hooks, that_unmap_watched_memory)
{
    const Watchdog watchdog("hooks that unmap");
    Card card(over_pin());
    std::mutex mutex;
    std::vector<Mapping> watched;
    for (int i = 0; i < 300; ++i) {
        watched.emplace_back(Kind::Private, page_size());
        cr_expect(card.reg(watched.back().data(), page_size()));
    }
    {
        const Hook hook([&](pin_moment, const void *, std::size_t) {
            Mapping victim;
            const std::lock_guard guard(mutex);
            if (!watched.empty()) {
                victim = std::move(watched.back());
                watched.pop_back();
            }
            victim.unmap();
        });
        cr_expect(work(card, 100));
    }
    cr_expect(watched.empty());
    cr_expect(card.close() == 0);
    expect_pin_is_empty();
}

// The hook waits for a lock whose holder waits in munmap for the event to be read.
Test(hooks, that_take_a_lock_which_another_thread_holds_while_it_unmaps)
{
    const Watchdog watchdog("a lock that is held while unmapping");
    Card card(over_pin());
    std::mutex mutex;
    std::atomic<bool> is_over{false};
    std::atomic<int> changes{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i)
        threads.emplace_back([&] {
            while (!is_over.load()) {
                Mapping memory(Kind::Private, 4 * page_size());
                const Region region = card.reg(memory.data(), memory.size());
                const std::lock_guard guard(mutex);
                madvise(memory.data(), page_size(), MADV_DONTNEED);
                memory.unmap();
                ++changes;
            }
        });
    {
        const Hook hook([&](pin_moment, const void *, std::size_t) { const std::lock_guard guard(mutex); });
        cr_expect(work(card, 100));
        is_over = true;
        for (std::thread &thread : threads)
            thread.join();
        cr_expect(hook.calls() > 100);
        cr_expect(changes > 0);
    }
    cr_expect(card.close() == 0);
    expect_pin_is_empty();
}

Test(hooks, that_use_the_domain_themselves)
{
    const Watchdog watchdog("hooks that register");
    Card card(over_pin());
    const Mapping own(Kind::Private, 8 * page_size());
    own.fill('O');
    {
        const Hook hook([&](pin_moment moment, const void *, std::size_t) {
            const std::size_t at = static_cast<std::size_t>(moment) * 2 * page_size();
            const Region region = card.reg(own.data() + at, page_size());
            cr_expect(region && seen(region, own.data() + at) == 'O');
        });
        cr_expect(work(card, 50));
    }
    cr_expect(card.close() == 0);
    expect_pin_is_empty();
}

// Memory that changes while it is registered: the one handle has what was there, and nobody else gets it.
Test(hooks, that_change_the_memory_which_is_being_registered)
{
    const Watchdog watchdog("memory that changes while it is registered");
    Card card(over_pin());
    const std::vector<Change> changes = private_changes();
    for (const pin_moment when : {PIN_BEFORE_REGISTER, PIN_AFTER_REGISTER})
        for (const Change &change : changes) {
            const Mapping memory = replaceable(Kind::Private, 4 * page_size());
            memory.fill('A');
            bool is_changed = false;
            Region first;
            {
                const Hook hook([&](pin_moment moment, const void *, std::size_t) {
                    if (moment == when && !is_changed) {
                        is_changed = true;
                        cr_expect(change.make(memory.data(), memory.size()), "%s", change.name);
                        memory.fill('B');
                    }
                });
                first = card.reg(memory.data(), memory.size());
            }
            cr_expect(is_changed && first);
            const Region second = card.reg(memory.data(), memory.size());
            for (std::size_t page = 0; page < 4; ++page)
                cr_expect(seen(second, memory.data() + page * page_size()) == 'B', "%s", change.name);
        }
}

// While registrations are given back, at the domain's end.
Test(hooks, at_the_end_of_a_domain)
{
    const Watchdog watchdog("hooks at the end of a domain");
    std::vector<Mapping> memory;
    {
        Card card(over_pin());
        for (int i = 0; i < 100; ++i) {
            memory.emplace_back(Kind::Private, page_size());
            cr_expect(card.reg(memory.back().data(), page_size()));
        }
        std::mutex mutex;
        const Hook hook([&](pin_moment, const void *, std::size_t) {
            const std::lock_guard guard(mutex);
            if (!memory.empty())
                memory.pop_back();
            std::free(std::malloc(1 << 20));
        });
        cr_expect(card.close() == 0);
        cr_expect(hook.calls() >= 200);
    }
    expect_pin_is_empty();
}
