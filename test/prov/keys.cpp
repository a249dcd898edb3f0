// SPDX-License-Identifier: BSD-2-Clause
// Who chooses a region's key, what a peer reaches with it, and for how long.
#include "prov/far_away.hpp"
#include "prov/over_pin.hpp"
#include "prov/variable.hpp"
#include "support/watchdog.hpp"

#include <cerrno>
#include <optional>
#include <set>
#include <vector>

#include <criterion/criterion.h>

using namespace regcache::test;

namespace {

constexpr char kAppKeys[] = "local,virt_addr,allocated"; // of pin: the application chooses keys
constexpr char kFromStart[] = "local,allocated,prov_key"; // of pin: remote addresses count from the region's start
constexpr int kInsists = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED;

Wish insisting_on_keys()
{
    Wish wish = over_pin();
    wish.mr_mode = kInsists;
    return wish;
}

std::uint64_t address_of(const void *memory) { return reinterpret_cast<std::uint64_t>(memory); }

} // namespace

TestSuite(keys, .init = need_pin);

Test(keys, a_key_reaches_the_whole_registration)
{
    Card card(over_pin());
    const Mapping memory(Kind::Private, 4 * page_size());
    memory.fill('A');
    const Region whole = card.reg(memory.data(), memory.size());
    const Region part = card.reg(memory.data() + page_size(), page_size());
    cr_expect(fi_mr_key(part.get()) == fi_mr_key(whole.get()));
    cr_expect(seen_by_peer(fi_mr_key(part.get()), memory.data() + page_size()) == 'A');
    cr_expect(pin->remote_write(fi_mr_key(part.get()), address_of(memory.data() + page_size()), "B", 1) == 1);
    cr_expect(memory.data()[page_size()] == 'B');
}

Test(keys, are_ours_where_the_application_leaves_them_to_the_provider)
{
    const Variable modes("FI_PIN_MR_MODE", kAppKeys);
    Card card(over_pin());
    cr_expect((card.info()->domain_attr->mr_mode & FI_MR_PROV_KEY) != 0, "the application must not choose");
    const Mapping memory(Kind::Private, 64 * page_size());
    memory.fill('A');
    const Region first = card.reg(memory.data(), page_size(), kAllRights, nullptr, 4711);
    const Region second = card.reg(memory.data(), page_size(), kAllRights, nullptr, 4712);
    cr_expect(registered() == 1, "shared, whatever key was asked for");
    cr_expect(fi_mr_key(first.get()) == fi_mr_key(second.get()));
    cr_expect(seen_by_peer(fi_mr_key(first.get()), memory.data()) == 'A');

    std::set<std::uint64_t> keys;
    std::vector<Region> regions;
    for (std::size_t at = 0; at < memory.size(); at += page_size()) {
        regions.push_back(card.reg(memory.data() + at, page_size(), kAllRights, nullptr, 4711));
        memory.data()[at] = static_cast<char>('0' + at / page_size());
        keys.insert(fi_mr_key(regions.back().get()));
    }
    cr_expect(keys.size() == 64, "each registration has a key of its own");
    for (std::size_t i = 0; i < regions.size(); ++i)
        cr_expect(seen_by_peer(fi_mr_key(regions[i].get()), memory.data() + i * page_size()) == static_cast<char>('0' + i));
}

// So are those of regions that can't be shared: no application may be told to choose some of them.
Test(keys, are_ours_for_what_is_passed_through)
{
    const Variable modes("FI_PIN_MR_MODE", kAppKeys);
    Card card(over_pin());
    const Mapping memory(Kind::Private, 4 * page_size());
    memory.fill('A');
    const iovec pieces[] = {{memory.data(), 10}, {memory.data() + page_size(), 10}};
    Region first, second;
    cr_expect(fi_mr_regv(card.domain(), pieces, 2, kAllRights, 0, 1, 0, first.out(), nullptr) == 0);
    cr_expect(fi_mr_regv(card.domain(), pieces, 2, kAllRights, 0, 1, 0, second.out(), nullptr) == 0, "the same key again");
    cr_expect(fi_mr_key(first.get()) != fi_mr_key(second.get()));
    cr_expect(seen_by_peer(fi_mr_key(second.get()), pieces[1].iov_base) == 'A');
}

Test(keys, that_the_application_insists_on_are_its_own)
{
    const Variable modes("FI_PIN_MR_MODE", kAppKeys);
    Card card(insisting_on_keys());
    cr_expect((card.info()->domain_attr->mr_mode & FI_MR_PROV_KEY) == 0);
    const Mapping memory(Kind::Private, 4 * page_size());
    memory.fill('A');
    const Region first = card.reg(memory.data(), page_size(), kAllRights, nullptr, 4711);
    const Region second = card.reg(memory.data(), page_size(), kAllRights, nullptr, 4712);
    cr_expect(registered() == 2, "a key names one registration");
    cr_expect(fi_mr_key(first.get()) == 4711 && fi_mr_key(second.get()) == 4712);
    cr_expect(look(first).requested_key == 4711 && look(second).requested_key == 4712);
    cr_expect(seen_by_peer(4712, memory.data()) == 'A');
    int error = 0;
    card.reg(memory.data(), page_size(), kAllRights, &error, 4711);
    cr_expect(error == -FI_ENOKEY, "as the lower provider says: %s", fi_strerror(-error));
}

Test(keys, for_local_use_are_told_as_they_were_given_and_shared)
{
    const Variable modes("FI_PIN_MR_MODE", kAppKeys);
    Card card(insisting_on_keys());
    const Mapping memory(Kind::Private, 4 * page_size());
    const Region first = card.reg(memory.data(), page_size(), kLocalRights, nullptr, 7);
    const Region second = card.reg(memory.data(), page_size(), kLocalRights, nullptr, 8);
    cr_expect(registered() == 1);
    cr_expect(fi_mr_key(first.get()) == 7 && fi_mr_key(second.get()) == 8);
    cr_expect(fi_mr_desc(first.get()) == fi_mr_desc(second.get()));
    // And are free for a region that a peer uses.
    const Region remote = card.reg(memory.data(), page_size(), kAllRights, nullptr, 7);
    cr_expect(remote && fi_mr_key(remote.get()) == 7);
}

Test(keys, that_the_cache_holds_idle_are_free_for_the_application)
{
    const Variable modes("FI_PIN_MR_MODE", kAppKeys);
    Card card(insisting_on_keys());
    const Mapping memory(Kind::Private, 4 * page_size());
    std::uint64_t held = 0;
    {
        const Region local = card.reg(memory.data(), page_size(), kLocalRights, nullptr, 7);
        held = look(local).key;
    }
    cr_expect(pin_count().live == 1);
    const Region remote = card.reg(memory.data() + page_size(), page_size(), kAllRights, nullptr, held);
    cr_expect(remote && fi_mr_key(remote.get()) == held);
}

Test(keys, that_count_from_the_start_share_only_what_starts_there)
{
    const Variable modes("FI_PIN_MR_MODE", kFromStart);
    Card card(over_pin());
    cr_expect((card.info()->domain_attr->mr_mode & FI_MR_VIRT_ADDR) == 0);
    const Mapping memory(Kind::Private, 4 * page_size());
    for (std::size_t i = 0; i < memory.size(); ++i)
        memory.data()[i] = static_cast<char>(i % 113);
    const Region whole = card.reg(memory.data(), memory.size());
    cr_expect(registered() == 1);
    const Region shorter = card.reg(memory.data(), 100);
    cr_expect(registered() == 1, "the same start");
    for (const std::size_t at : {std::size_t{1}, std::size_t{100}, page_size(), page_size() + 5}) {
        const std::uint64_t before = registered();
        const Region region = card.reg(memory.data() + at, 100);
        cr_expect(registered() == before + 1, "another start");
        for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{99}}) {
            char byte = 0;
            cr_expect(pin->remote_read(fi_mr_key(region.get()), offset, &byte, 1) == 1);
            cr_expect(byte == memory.data()[at + offset]);
        }
        const Region again = card.reg(memory.data() + at, 50);
        cr_expect(registered() == before + 1);
    }
    const std::uint64_t before = registered();
    const Region local = card.reg(memory.data() + 3, 100, kLocalRights);
    cr_expect(registered() == before, "local use has no offset");
}

// The two names from before there were bits.
Test(keys, of_the_old_modes_work)
{
    const Mapping memory(Kind::Private, 4 * page_size());
    memory.fill('A');
    {
        const Variable modes("FI_PIN_MR_MODE", "virt_addr,allocated,prov_key");
        Wish wish = over_pin();
        wish.mr_mode = FI_MR_BASIC;
        Card card(wish);
        cr_expect(card.info()->domain_attr->mr_mode == FI_MR_BASIC);
        for (int i = 0; i < 3; ++i) {
            const Region region = card.reg(memory.data() + page_size(), page_size());
            cr_expect(seen_by_peer(fi_mr_key(region.get()), memory.data() + page_size()) == 'A');
        }
        cr_expect(registered() == 1);
    }
    pin->reset();
    {
        const Variable modes("FI_PIN_MR_MODE", "none");
        Wish wish = over_pin();
        wish.mr_mode = FI_MR_SCALABLE;
        Card card(wish);
        cr_expect(card.info()->domain_attr->mr_mode == FI_MR_SCALABLE);
        for (std::uint64_t key = 1; key <= 3; ++key) {
            const Region region = card.reg(memory.data() + 10, page_size(), kAllRights, nullptr, key);
            char byte = 0;
            cr_expect(pin->remote_read(key, 0, &byte, 1) == 1 && byte == 'A');
        }
        cr_expect(registered() == 3);
    }
}

Test(keys, end_with_their_region_when_told_so)
{
    const Variable remote_keys("FI_REGCACHE_REMOTE_KEYS", "close");
    Card card(over_pin());
    const Mapping memory(Kind::Private, page_size());
    memory.fill('A');
    Region first = card.reg(memory.data(), page_size()), second = card.reg(memory.data(), page_size());
    const std::uint64_t key = fi_mr_key(first.get());
    cr_expect(registered() == 1, "users at the same time share");
    cr_expect(first.close() == 0);
    cr_expect(seen_by_peer(key, memory.data()) == 'A', "somebody has it open");
    cr_expect(second.close() == 0);
    char byte;
    cr_expect(pin->remote_read(key, address_of(memory.data()), &byte, 1) == -ENOKEY);
    cr_expect(pin->remote_write(key, address_of(memory.data()), "B", 1) == -ENOKEY);
    cr_expect(memory.data()[0] == 'A');
    cr_expect(pin_count().live == 0);
    // Each right alone, and local ones stay.
    for (const std::uint64_t right : {std::uint64_t{FI_REMOTE_READ}, std::uint64_t{FI_REMOTE_WRITE}}) {
        cr_expect(card.reg(memory.data(), page_size(), FI_SEND | right));
        cr_expect(pin_count().live == 0);
    }
    cr_expect(card.reg(memory.data(), page_size(), kLocalRights));
    cr_expect(pin_count().live == 1);
}

// The default, which protocols that register for each message need: the key is good until the memory goes.
Test(keys, stay_good_until_the_memory_goes_by_default)
{
    for (const char *value : {"", "keep"}) {
        std::optional<Variable> remote_keys;
        if (*value)
            remote_keys.emplace("FI_REGCACHE_REMOTE_KEYS", value);
        Card card(over_pin());
        Mapping memory = replaceable(Kind::Private, page_size());
        memory.fill('A');
        std::uint64_t key = 0;
        {
            const Region region = card.reg(memory.data(), page_size());
            key = fi_mr_key(region.get());
        }
        cr_expect(seen_by_peer(key, memory.data()) == 'A');
        char *const start = memory.data();
        memory.unmap();
        const Mapping again(Kind::Private, page_size(), start);
        again.fill('B');
        const Region region = card.reg(again.data(), page_size());
        cr_expect(fi_mr_key(region.get()) != key);
        cr_expect(seen_by_peer(fi_mr_key(region.get()), start) == 'B');
        cr_expect(seen_by_peer(key, start) != 'B', "the old key reaches nothing new");
        cr_expect(is_pinned_back_at(2 * page_size() / 1024), "the keeper gives the old one back");
    }
}

// A provider that hands out the key of a region that was just closed.
Test(keys, that_are_used_again_at_once_name_the_new_region)
{
    const Watchdog watchdog("keys that are used again");
    pin->keys(PIN_KEYS_LOWEST);
    Card card(over_pin());
    Mapping memory = replaceable(Kind::Private, 2 * page_size());
    char *const start = memory.data();
    std::set<std::uint64_t> keys;
    for (int round = 0; round < 1000; ++round) {
        const char letter = static_cast<char>('A' + round % 26);
        memory.fill(letter);
        const Region first = card.reg(start, page_size()), second = card.reg(start + page_size(), page_size());
        cr_assert(fi_mr_key(first.get()) != fi_mr_key(second.get()));
        cr_assert(seen_by_peer(fi_mr_key(first.get()), start) == letter, "round %d", round);
        cr_assert(seen_by_peer(fi_mr_key(second.get()), start + page_size()) == letter, "round %d", round);
        keys.insert(fi_mr_key(first.get()));
        if (round % 100 == 0)
            cr_assert(eventually([] { return pin_count().live == 2; }), "the keeper gives back what is stale");
        memory.unmap();
        memory = Mapping(Kind::Private, 2 * page_size(), start);
    }
    cr_expect(keys.size() < 1000, "pin used no key again");
}
