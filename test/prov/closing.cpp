// SPDX-License-Identifier: BSD-2-Clause
// What may be closed when, and what is left afterwards: nothing. How a process ends with all of it open is in footprint.sh.
#include "prov/over_pin.hpp"
#include "support/watchdog.hpp"

#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include <criterion/criterion.h>

using namespace regcache::test;

namespace {

bool works(Card &card)
{
    const Mapping memory(Kind::Private, 2 * page_size());
    memory.fill('W');
    const Region first = card.reg(memory.data(), memory.size());
    const Region second = card.reg(memory.data(), page_size());
    return first && second && seen(first, memory.data()) == 'W' && seen(second, memory.data()) == 'W';
}

} // namespace

TestSuite(closing, .init = need_pin);

Test(closing, a_domain_with_an_open_region_is_busy_and_goes_on)
{
    Card card(over_pin());
    const Mapping memory(Kind::Private, page_size());
    memory.fill('A');
    Region region = card.reg(memory.data(), page_size());
    const Region idle = card.reg(memory.data(), page_size());
    const std::uint64_t before = registered();
    for (int i = 0; i < 3; ++i)
        cr_expect(fi_close(&card.domain()->fid) == -FI_EBUSY);
    cr_expect(pin_count().live == 1, "nothing has changed");
    cr_expect(seen(region, memory.data()) == 'A');
    const Region hit = card.reg(memory.data(), page_size());
    cr_expect(registered() == before, "what was cached is cached");
    cr_expect(works(card));
}

Test(closing, a_domain_closes_once_its_regions_are_closed)
{
    {
        Card card(over_pin());
        const Mapping memory(Kind::Private, 4 * page_size());
        Region cached = card.reg(memory.data(), page_size());
        const iovec pieces[] = {{memory.data(), 1}, {memory.data() + page_size(), 1}};
        Region passed;
        cr_assert(fi_mr_regv(card.domain(), pieces, 2, FI_SEND, 0, 0, 0, passed.out(), nullptr) == 0);
        cr_expect(fi_close(&card.domain()->fid) == -FI_EBUSY);
        cr_expect(cached.close() == 0);
        cr_expect(fi_close(&card.domain()->fid) == -FI_EBUSY, "one that was passed through is open");
        cr_expect(passed.close() == 0);
        cr_expect(card.close() == 0);
    }
    expect_pin_is_empty();
}

Test(closing, a_region_whose_memory_is_gone_keeps_its_domain_busy)
{
    Card card(over_pin());
    Mapping memory(Kind::Private, page_size());
    Region region = card.reg(memory.data(), page_size());
    memory.unmap();
    cr_expect(fi_close(&card.domain()->fid) == -FI_EBUSY);
    cr_expect(region.close() == 0);
    cr_expect(card.close() == 0);
    expect_pin_is_empty();
}

Test(closing, a_domain_with_an_open_endpoint_is_busy_and_goes_on)
{
    Card card(over_pin());
    {
        Owned<fid_ep> ep;
        Owned<fid_cq> cq;
        fi_cq_attr attr{};
        cr_assert(fi_cq_open(card.domain(), &attr, cq.out(), nullptr) == 0);
        cr_assert(fi_endpoint(card.domain(), card.info(), ep.out(), nullptr) == 0);
        cr_expect(works(card));
        for (int i = 0; i < 3; ++i) {
            cr_expect(fi_close(&card.domain()->fid) == -FI_EBUSY);
            cr_expect(works(card));
        }
        cr_expect(ep.close() == 0);
        cr_expect(fi_close(&card.domain()->fid) == -FI_EBUSY);
        cr_expect(works(card));
    }
    cr_expect(card.close() == 0);
    expect_pin_is_empty();
}

Test(closing, a_fabric_with_anything_open_is_busy_and_goes_on)
{
    Card card(over_pin());
    cr_expect(fi_close(&card.fabric()->fid) == -FI_EBUSY);
    cr_expect(works(card));
    Owned<fid_eq> eq;
    fi_eq_attr attr{};
    cr_assert(fi_eq_open(card.fabric(), &attr, eq.out(), nullptr) == 0);
    cr_expect(card.close() == -FI_EBUSY, "the domain closes, the fabric has a queue");
    Owned<fid_domain> domain;
    cr_expect(fi_domain(card.fabric(), card.info(), domain.out(), nullptr) == 0);
    cr_expect(domain.close() == 0);
    cr_expect(eq.close() == 0);
    cr_expect(card.close() == 0);
    expect_pin_is_empty();
}

// In the order that applications close: regions after the endpoint, the memory before the regions, or after the domain.
Test(closing, memory_may_outlive_the_domain)
{
    const Mapping memory(Kind::Private, 8 * page_size());
    memory.fill('A');
    for (int round = 0; round < 3; ++round) {
        Card card(over_pin());
        for (int i = 0; i < 8; ++i)
            cr_expect(card.reg(memory.data() + i * page_size(), page_size()));
        cr_expect(card.close() == 0);
        expect_pin_is_empty();
    }
    cr_expect(memory.data()[0] == 'A');
}

Test(closing, two_hundred_domains_leave_nothing)
{
    const Watchdog watchdog("200 domains");
    find_info(over_pin());
    cr_expect(Card(over_pin()).close() == 0); // what libfabric and pin keep for good
    const Base before = measure_base();
    for (int round = 0; round < 200; ++round) {
        Card card(over_pin());
        Mapping memory(Kind::Private, 4 * page_size());
        const Region region = card.reg(memory.data(), memory.size());
        cr_assert(region);
        if (round % 2 == 0)
            memory.unmap();
    }
    cr_expect(is_back_at_base(before));
    expect_pin_is_empty();
}

Test(closing, domains_come_and_go_beside_others)
{
    const Watchdog watchdog("domains beside others");
    const Base before = measure_base();
    {
        Card stays(over_pin()); // sets the environment, which threads may not
        Wish wish = over_pin();
        wish.lower = "";
        std::atomic<int> wrong{0};
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; ++i)
            threads.emplace_back([&] {
                for (int round = 0; round < 25; ++round) {
                    Card card(wish);
                    wrong += !works(card);
                }
            });
        for (std::thread &thread : threads)
            thread.join();
        cr_expect(wrong == 0);
        cr_expect(works(stays));
    }
    cr_expect(is_back_at_base(before));
    expect_pin_is_empty();
}

// The event source starts and stops with the first and the last domain, while others change what was watched.
Test(closing, domains_come_and_go_while_threads_map_and_unmap)
{
    const Watchdog watchdog("domains beside changes");
    find_info(over_pin());
    const Base before = measure_base();
    {
        std::atomic<bool> is_over{false};
        std::atomic<fid_domain *> in_use{nullptr};
        std::atomic<int> wrong{0};
        std::shared_mutex open; // shared: the domain stays
        std::vector<std::thread> threads;
        for (int i = 0; i < 8; ++i)
            threads.emplace_back([&] {
                while (!is_over.load()) {
                    Mapping memory(Kind::Private, 2 * page_size());
                    memory.fill('M');
                    if (in_use.load()) {
                        const std::shared_lock lock(open);
                        Region region;
                        if (fid_domain *const domain = in_use.load(); domain)
                            wrong += fi_mr_reg(domain, memory.data(), memory.size(), FI_SEND, 0, 0, 0, region.out(), nullptr) != 0;
                        wrong += region && seen(region, memory.data()) != 'M';
                    }
                    std::this_thread::yield();
                } // unmapped when the domain may be about to close
            });
        for (int round = 0; round < 300; ++round) {
            Card card(over_pin());
            in_use = card.domain();
            std::this_thread::yield();
            in_use = nullptr;
            const std::lock_guard lock(open);
            wrong += card.close() != 0;
        }
        is_over = true;
        for (std::thread &thread : threads)
            thread.join();
        cr_expect(wrong == 0, "%d times wrong", wrong.load());
    }
    cr_expect(is_back_at_base(before));
    expect_pin_is_empty();
}
