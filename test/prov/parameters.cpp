// SPDX-License-Identifier: BSD-2-Clause
// What each FI_REGCACHE_ variable does, and what is said of a value that it can't have. FI_REGCACHE_LOWER is in lowers.cpp,
// FI_REGCACHE_OFFER in discovery.cpp.
#include "prov/far_away.hpp"
#include "prov/messages.hpp"
#include "prov/over_pin.hpp"
#include "prov/variable.hpp"

#include <string>
#include <vector>

#include <criterion/criterion.h>

using namespace regcache::test;

namespace {

// Registrations that pin makes for three equal requests, of which the first two are closed again.
std::uint64_t made_for_three(Card &card, std::size_t pages = 1)
{
    const Mapping memory(Kind::Private, pages * page_size());
    const std::uint64_t before = registered();
    for (int i = 0; i < 3; ++i)
        cr_expect(card.reg(memory.data(), memory.size(), kLocalRights));
    return registered() - before;
}

void begin()
{
    show_warnings();
    need_pin();
}

} // namespace

TestSuite(parameters, .init = begin);

Test(parameters, a_wrong_value_is_named_once_and_the_default_is_taken)
{
    const struct {
        const char *variable, *value;
        std::vector<std::string> allowed;
    } trials[] = {
        {"FI_REGCACHE_SHARED", "perhaps", {"never", "always"}},
        {"FI_REGCACHE_REMOTE_KEYS", "forget", {"keep", "close"}},
        {"FI_REGCACHE_STATS", "maybe", {"yes", "no"}},
        {"FI_REGCACHE_OFFER", "sometimes", {"asked", "always"}},
        {"FI_REGCACHE_MAX_COUNT", "many", {"number"}},
        {"FI_REGCACHE_MAX_COUNT", "-1", {"number"}},
        {"FI_REGCACHE_MAX_COUNT", "4K", {"number"}},
        {"FI_REGCACHE_MAX_COUNT", "99999999999999999999", {"number"}},
        {"FI_REGCACHE_MAX_SIZE", "large", {"K", "M", "G", "T"}},
        {"FI_REGCACHE_MAX_SIZE", "1X", {"K", "M", "G", "T"}},
        {"FI_REGCACHE_MAX_SIZE", "1KB", {"K", "M", "G", "T"}},
        {"FI_REGCACHE_MAX_SIZE", "99999999T", {"K", "M", "G", "T"}},
    };
    for (const auto &trial : trials) {
        const Messages messages;
        const Variable variable(trial.variable, trial.value);
        {
            Card card(over_pin());
            cr_expect(made_for_three(card) == 1, "%s=%s", trial.variable, trial.value);
        }
        std::vector<std::string> parts = trial.allowed;
        parts.push_back(std::string(trial.variable) + '=' + trial.value);
        cr_expect(messages.warnings(parts) == 1, "%s", messages.text().c_str());
        cr_expect(messages.warnings() == 1, "%s", messages.text().c_str());
    }
}

Test(parameters, an_unknown_source_fails_the_fabric_and_finds_nothing)
{
    const Messages messages;
    const Info info = find_info(over_pin());
    cr_assert(info);
    const Variable source("FI_REGCACHE_SOURCE", "nonsense");
    cr_expect(!find_info(over_pin()));
    fid_fabric *fabric = nullptr;
    cr_expect(fi_fabric(info->fabric_attr, &fabric, nullptr) == -FI_EINVAL);
    cr_expect(!fabric);
    cr_expect(messages.warnings({"FI_REGCACHE_SOURCE=nonsense", "auto", "userfaultfd", "none"}) == 1, "%s",
              messages.text().c_str());
    cr_expect(messages.warnings() == 1, "%s", messages.text().c_str());
}

Test(parameters, without_a_source_nothing_is_cached_and_all_works)
{
    const Messages messages;
    const Variable source("FI_REGCACHE_SOURCE", "None");
    const Variable stats("FI_REGCACHE_STATS", "yes");
    {
        Card card(over_pin());
        cr_expect(made_for_three(card) == 3);
    }
    cr_expect(messages.warnings() == 0, "it was asked for: %s", messages.text().c_str());
    cr_expect(messages.lines({"\"source\": \"none\""}).size() == 1);
    cr_expect(messages.statistic("hits") == 0);
    cr_expect(messages.statistic("uncacheable") == 3);
}

Test(parameters, max_count_0_caches_nothing)
{
    const Messages messages;
    const Variable count("FI_REGCACHE_MAX_COUNT", "0");
    Card card(over_pin());
    cr_expect(made_for_three(card) == 3);
}

Test(parameters, max_size_takes_every_suffix)
{
    const Messages messages;
    for (const char *value : {"65536", "64K", "64k", "1M", "1g", "1T"}) {
        const Variable size("FI_REGCACHE_MAX_SIZE", value);
        Card card(over_pin());
        cr_expect(made_for_three(card, 16) == 1, "%s", value);
    }
    cr_expect(messages.warnings() == 0, "%s", messages.text().c_str());
    for (const char *value : {"0", "4096", "63K"}) {
        const Variable size("FI_REGCACHE_MAX_SIZE", value);
        Card card(over_pin());
        cr_expect(made_for_three(card, 16) == 3, "%s", value);
    }
}

Test(parameters, shared_memory_is_cached_on_the_user_s_word)
{
    const Messages messages;
    const auto registrations = [](const char *shared) {
        const Variable variable("FI_REGCACHE_SHARED", shared);
        const Variable source("FI_REGCACHE_SOURCE", "userfaultfd"); // ebpf sees all of it
        Card card(over_pin());
        const Mapping memory(Kind::Shared, 4 * page_size());
        memory.fill('A');
        const std::uint64_t before = registered();
        for (int i = 0; i < 3; ++i)
            cr_expect(card.reg(memory.data(), memory.size(), kLocalRights));
        return registered() - before;
    };
    cr_expect(registrations("never") == 3);
    cr_expect(registrations("always") == 1);
}

Test(parameters, statistics_are_printed_when_they_are_asked_for)
{
    for (const char *value : {"no", "yes", "YES"}) {
        const Messages messages;
        const Variable stats("FI_REGCACHE_STATS", value);
        cr_expect(Card(over_pin()).close() == 0);
        const std::size_t wanted = std::string(value) != "no";
        cr_expect(messages.lines({"regcache: statistics {", "}"}).size() == wanted, "%s: %s", value, messages.text().c_str());
    }
}

Test(parameters, statistics_count_what_has_happened)
{
    const Messages messages;
    const Variable stats("FI_REGCACHE_STATS", "yes");
    {
        Card card(over_pin());
        Mapping memory = replaceable(Kind::Private, 4 * page_size());
        memory.fill('A');
        for (int i = 0; i < 3; ++i)
            cr_expect(card.reg(memory.data(), memory.size(), kLocalRights)); // a miss and two hits
        cr_expect(card.reg(memory.data(), page_size(), kAllRights));         // a miss: more rights
        const iovec pieces[] = {{memory.data(), 1}, {memory.data() + page_size(), 1}};
        Region region;
        cr_expect(fi_mr_regv(card.domain(), pieces, 2, FI_SEND, 0, 0, 0, region.out(), nullptr) == 0); // passed through
        cr_expect(region.close() == 0);
        char *const start = memory.data();
        memory.unmap(); // takes two of the cache's registrations
        const Mapping again(Kind::Private, page_size(), start);
        pin->limit(1, 0);
        cr_expect(card.reg(start, page_size(), kLocalRights));                 // a miss
        const Mapping other(Kind::Private, page_size());
        cr_expect(card.reg(other.data(), other.size(), kLocalRights)); // a miss that is refused once and evicts
        pin->limit(0, 0);
    } // unmaps the second one while the domain is open
    cr_expect(messages.statistic("asked") == 7);
    cr_expect(messages.statistic("hits") == 2);
    cr_expect(messages.statistic("misses") == 4);
    cr_expect(messages.statistic("passed_through") == 1);
    cr_expect(messages.statistic("invalidations") == 3);
    cr_expect(messages.statistic("evictions") == 1);
    cr_expect(messages.statistic("registrations") == 4);
    cr_expect(messages.statistic("refused") >= 1);
    cr_expect(messages.statistic("uncacheable") == 0);
    cr_expect(messages.statistic("events") >= 1);
    cr_expect(messages.statistic("lost") == 0);
    cr_expect(messages.statistic("pinned_bytes") == 0);
    cr_expect(messages.statistic("most_pinned_bytes") == static_cast<std::int64_t>(5 * page_size()));
    cr_expect(messages.lines({"\"domain\": \"pin:pin0\"", "\"source\": \""}).size() == 1, "%s", messages.text().c_str());
}
