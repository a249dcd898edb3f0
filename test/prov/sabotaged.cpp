// SPDX-License-Identifier: BSD-2-Clause
// The controls of the tests for stale memory: the provider with event sources that don't keep their promise. What the tests see
// must be wrong then; and a source that has to prove itself must not be used.
#include "prov/messages.hpp"
#include "prov/same_address.hpp"
#include "prov/variable.hpp"
#include "support/watchdog.hpp"

#include <cstdlib>
#include <string>

#include <criterion/criterion.h>

using namespace regcache::test;

namespace {

void begin()
{
    const std::string support = std::string(std::getenv("BUILD_DIR")) + "/test/support";
    setenv("FI_PROVIDER_PATH", (support + "/sabotaged/.libs:" + support + "/.libs").c_str(), 1);
    need_pin();
}

void begin_with_warnings()
{
    show_warnings();
    begin();
}

} // namespace

TestSuite(sabotaged, .init = begin);
TestSuite(sabotaged_choice, .init = begin_with_warnings);

Test(sabotaged, a_blind_source_is_found_out_by_one_thread)
{
    const Watchdog watchdog("a blind source");
    const Variable source("FI_REGCACHE_SOURCE", "blind");
    Card card(over_pin());
    const int wrong = stale_rounds_of_one_thread(card, 100);
    cr_expect(wrong >= 90, "only %d of 100 rounds saw old pages", wrong);
}

Test(sabotaged, a_blind_source_is_found_out_by_every_change)
{
    const Variable source("FI_REGCACHE_SOURCE", "blind");
    Card card(over_pin());
    for (const Change &change : private_changes()) {
        const Mapping memory = replaceable(Kind::Private, 2 * page_size());
        memory.fill('A');
        cr_expect(card.reg(memory.data(), memory.size()));
        if (!change.make(memory.data(), memory.size()))
            continue;
        memory.fill('B');
        const Region region = card.reg(memory.data(), memory.size());
        cr_expect(seen(region, memory.data()) != 'B', "%s", change.name);
    }
}

// What it doesn't tell in time is told later: only whoever takes an address from another thread at once is harmed.
Test(sabotaged, a_source_that_does_not_confirm_is_found_out_by_two_threads)
{
    const Watchdog watchdog("a source that doesn't confirm");
    const Variable source("FI_REGCACHE_SOURCE", "unconfirmed");
    Card card(over_pin());
    cr_expect(stale_rounds_of_two_threads(card, 100'000, 3) == 3, "old pages were never seen");
}

Test(sabotaged_choice, a_blind_source_that_must_prove_itself_is_not_used)
{
    const Messages messages;
    const Variable stats("FI_REGCACHE_STATS", "yes");
    {
        Card card(over_pin());
        cr_expect(stale_rounds_of_one_thread(card, 100) == 0);
    }
    cr_expect(messages.statistic("hits") == 0);
    cr_expect(messages.lines({"\"source\": \"none\""}).size() == 1);
    cr_expect(messages.warnings({"none is used", "nothing is cached", "doesn't tell of munmap"}) == 1, "%s",
              messages.text().c_str());
    cr_expect(messages.warnings() == 1, "%s", messages.text().c_str());
    const Variable source("FI_REGCACHE_SOURCE", "proved");
    const Info info = find_info(over_pin());
    Owned<fid_fabric> fabric;
    fid_domain *domain = nullptr;
    cr_assert(fi_fabric(info->fabric_attr, fabric.out(), nullptr) == 0);
    cr_expect(fi_domain(fabric.get(), info.get(), &domain, nullptr) == -FI_ENOSYS);
    cr_expect(messages.warnings({"proved can't be used", "doesn't tell of munmap"}) == 1, "%s", messages.text().c_str());
}
