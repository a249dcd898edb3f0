// SPDX-License-Identifier: BSD-2-Clause
// Is memory that changed ever served by its old pages? The program fills pages, registers, changes the mapping by each way that
// the kernel has, fills again, registers again and looks through the card. What sabotaged.cpp finds with a source that
// tells nothing shows that this would see it. A program that is linked statically can't load providers; its way of
// unmapping, the system call itself, is among the changes.
#include "prov/same_address.hpp"
#include "prov/variable.hpp"
#include "support/watchdog.hpp"

#include <dlfcn.h>

#include <cstring>
#include <string>
#include <vector>

#include <criterion/criterion.h>

using namespace regcache::test;

namespace {

constexpr std::size_t kPages = 8;

// The whole memory is the card's, page by page.
bool is_seen(const Region &region, const char *start, std::size_t bytes, char letter)
{
    for (std::size_t at = 0; at < bytes; at += page_size())
        if (seen(region, start + at) != letter)
            return false;
    return true;
}

} // namespace

TestSuite(stale, .init = need_pin);

Test(stale, never_after_an_address_was_mapped_again)
{
    const Watchdog watchdog("mapping an address again");
    const int rounds = sanitizer() ? 1000 : 10'000;
    Card card(over_pin());
    const int wrong = stale_rounds_of_one_thread(card, rounds);
    cr_expect(wrong == 0, "%d rounds saw old pages", wrong);
    cr_expect(registered() >= static_cast<std::uint64_t>(rounds));
}

Test(stale, never_after_any_change_of_private_memory)
{
    const Watchdog watchdog("every change");
    Card card(over_pin());
    for (const Change &change : private_changes())
        for (const auto &[first, count] : {std::pair{std::size_t{0}, kPages}, {std::size_t{0}, std::size_t{1}},
                                           {std::size_t{3}, std::size_t{2}}, {kPages - 1, std::size_t{1}}})
            for (const bool stays_open : {false, true}) {
                const Mapping memory = replaceable(Kind::Private, kPages * page_size());
                memory.fill('A');
                Region before = card.reg(memory.data(), memory.size());
                cr_assert(is_seen(before, memory.data(), memory.size(), 'A'), "%s", change.name);
                if (!stays_open)
                    cr_assert(before.close() == 0);
                if (!change.make(memory.data() + first * page_size(), count * page_size())) {
                    cr_log_info("%s isn't there", change.name);
                    continue;
                }
                memory.fill('B');
                const Region after = card.reg(memory.data(), memory.size());
                cr_expect(is_seen(after, memory.data(), memory.size(), 'B'), "%s of %zu pages from %zu on, %s", change.name,
                          count, first, stays_open ? "a handle open" : "no handle open");
                const Region part = card.reg(memory.data() + first * page_size(), 1);
                cr_expect(seen(part, memory.data() + first * page_size()) == 'B', "%s", change.name);
            }
}

Test(stale, never_after_any_change_of_shared_memory_and_files)
{
    const Watchdog watchdog("every change of shared memory");
    Card card(over_pin());
    for (const Kind kind : {Kind::Shared, Kind::Memfd, Kind::SysV, Kind::FilePrivate, Kind::FileShared})
        for (const SharedChange &change : shared_changes()) {
            Mapping memory = replaceable(kind, kPages * page_size());
            memory.fill('A');
            // A private copy of a page is the process's own: what is done to the file doesn't change it.
            const std::uint64_t access = kind == Kind::FileShared ? std::uint64_t{FI_SEND} : kLocalRights;
            cr_assert(is_seen(card.reg(memory.data(), memory.size(), access), memory.data(), memory.size(), 'A'), "%s",
                      name_of(kind));
            if (!change.make(memory))
                continue;
            memory.fill('B');
            const Region after = card.reg(memory.data(), memory.size(), access);
            cr_expect(is_seen(after, memory.data(), memory.size(), 'B'), "%s of %s", change.name, name_of(kind));
        }
}

Test(stale, never_after_the_heap_shrank_and_grew)
{
    Card card(over_pin());
    const auto misalignment = reinterpret_cast<std::uintptr_t>(sbrk(0)) % page_size();
    if (misalignment != 0)
        sbrk(static_cast<std::intptr_t>(page_size() - misalignment));
    const auto bytes = static_cast<std::intptr_t>(kPages * page_size());
    for (int round = 0; round < 20; ++round) {
        char *const start = static_cast<char *>(sbrk(bytes));
        cr_assert(start != reinterpret_cast<char *>(-1));
        const char letter = static_cast<char>('A' + round);
        std::memset(start, letter, static_cast<std::size_t>(bytes));
        cr_expect(is_seen(card.reg(start, kPages * page_size()), start, kPages * page_size(), letter), "round %d", round);
        // Unless malloc has grown the heap meanwhile.
        if (sbrk(0) == start + bytes)
            cr_assert(sbrk(-bytes) != reinterpret_cast<void *>(-1));
    }
}

// What takes no page away costs no registration either.
Test(stale, and_pages_that_stay_stay_cached)
{
    Card card(over_pin());
    for (const Change &change : changes_that_keep_pages()) {
        const Mapping memory = replaceable(Kind::Private, kPages * page_size());
        memory.fill('A');
        cr_expect(card.reg(memory.data(), memory.size()));
        const std::uint64_t before = registered();
        cr_assert(change.make(memory.data() + page_size(), 2 * page_size()), "%s", change.name);
        memory.fill('B');
        const Region after = card.reg(memory.data(), memory.size());
        cr_expect(is_seen(after, memory.data(), memory.size(), 'B'), "%s", change.name);
        if (std::string(change.name).find("FREE") == std::string::npos) // which userfaultfd tells as a change
            cr_expect(registered() == before, "%s", change.name);
    }
}

Test(stale, never_when_a_plugin_of_its_own_libc_calls_unmaps)
{
    const std::string path = std::string(std::getenv("BUILD_DIR")) + "/test/prov/.libs/libreplace_pages.so";
    Card card(over_pin());
    void *const plugin = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    cr_assert(plugin, "%s", dlerror());
    const auto replace = reinterpret_cast<int (*)(void *, std::size_t)>(dlsym(plugin, "replace_pages"));
    cr_assert(replace);
    for (int round = 0; round < 100; ++round) {
        const Mapping memory = replaceable(Kind::Private, kPages * page_size());
        memory.fill('A');
        cr_expect(card.reg(memory.data(), memory.size()));
        cr_assert(replace(memory.data(), memory.size()) == 0);
        memory.fill('B');
        cr_expect(is_seen(card.reg(memory.data(), memory.size()), memory.data(), memory.size(), 'B'), "round %d", round);
    }
    dlclose(plugin);
}

// Each way on which a request may come to an entry, right after the entry's memory has changed.
Test(stale, on_no_path_to_an_entry)
{
    const Watchdog watchdog("every path");
    const struct {
        const char *name, *modes, *remote_keys;
        int mr_mode;
    } settings[] = {
        {"the provider's keys", "local,virt_addr,allocated,prov_key", "keep", kBasicModes},
        {"keys end with their region", "local,virt_addr,allocated,prov_key", "close", kBasicModes},
        {"our keys", "local,virt_addr,allocated", "keep", kBasicModes},
        {"the application's keys", "local,virt_addr,allocated", "keep", FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED},
        {"offsets from the start", "local,allocated,prov_key", "keep", kBasicModes},
        {"no modes", "none", "keep", kBasicModes},
    };
    std::uint64_t next_key = 1;
    for (const auto &setting : settings) {
        const Variable modes("FI_PIN_MR_MODE", setting.modes), remote_keys("FI_REGCACHE_REMOTE_KEYS", setting.remote_keys);
        Wish wish = over_pin();
        wish.mr_mode = setting.mr_mode;
        Card card(wish);
        for (const std::uint64_t access : {kLocalRights, kAllRights, std::uint64_t{FI_SEND}})
            for (unsigned path = 0; path < 16; ++path) {
                const bool is_part = path & 1, stays_open = path & 2, has_neighbours = path & 4, is_refused = path & 8;
                const Mapping memory = replaceable(Kind::Private, kPages * page_size());
                memory.fill('A');
                char *const start = memory.data();
                std::vector<Region> open;
                if (has_neighbours) {
                    open.push_back(card.reg(start + page_size(), 2 * page_size(), access, nullptr, next_key++));
                    open.push_back(card.reg(start + page_size() / 2, page_size(), kAllRights, nullptr, next_key++));
                }
                open.push_back(card.reg(start, memory.size(), access, nullptr, next_key++));
                if (!stays_open)
                    open.clear();
                cr_assert(replace_by_unmapping(start, memory.size()));
                memory.fill('B');
                if (is_refused)
                    pin->limit(pin_count().live + 1, 0);
                Region region = is_part ? card.reg(start + page_size(), 100, access, nullptr, next_key++)
                                        : card.reg(start, memory.size(), access, nullptr, next_key++);
                cr_expect(region && seen(region, start + page_size()) == 'B', "%s, path %u, access %#lx", setting.name, path, access);
                const iovec piece{start, memory.size()};
                fi_mr_attr attr{};
                attr.mr_iov = &piece;
                attr.iov_count = 1;
                attr.access = access;
                attr.requested_key = next_key++;
                pin->limit(0, 0);
                region = card.regattr(attr);
                cr_expect(region && is_seen(region, start, memory.size(), 'B'), "%s, path %u", setting.name, path);
            }
    }
}

// Registrations and changes of parts of huge pages, which the kernel splits or doesn't.
Test(stale, never_in_parts_of_huge_pages)
{
    const Watchdog watchdog("huge pages");
    constexpr std::size_t kHuge = std::size_t{2} << 20;
    Card card(over_pin());
    for (const Kind kind : {Kind::Thp, Kind::HugeTlb})
        try {
            for (const bool takes_all : {false, true}) {
                const Mapping memory = replaceable(kind, 2 * kHuge);
                memory.fill('A');
                char *const start = memory.data();
                const std::pair<std::size_t, std::size_t> parts[] = {
                    {0, page_size()}, {kHuge / 2, 65536}, {kHuge - page_size(), 2 * page_size()}, {0, 2 * kHuge}};
                for (const auto &[at, bytes] : parts)
                    cr_expect(is_seen(card.reg(start + at, bytes), start + at, bytes, 'A'), "%s at %zu", name_of(kind), at);
                const std::size_t gone = takes_all || kind == Kind::HugeTlb ? kHuge : 65536;
                cr_assert(madvise(start, gone, MADV_DONTNEED) == 0);
                if (kind == Kind::Thp)
                    cr_assert(replace_in_place(start + kHuge / 2, 65536));
                memory.fill('B');
                for (const auto &[at, bytes] : parts)
                    cr_expect(is_seen(card.reg(start + at, bytes), start + at, bytes, 'B'), "%s at %zu", name_of(kind), at);
            }
        } catch (const Unavailable &missing) {
            cr_log_info("%s: %s", name_of(kind), missing.what());
        }
}

// The handle's own registration holds the old pages for as long as it is open, which harms nobody; the others are right.
Test(stale, never_beside_a_handle_whose_pages_were_partly_unmapped)
{
    Card card(over_pin());
    for (const std::size_t gone : {std::size_t{0}, kPages / 2, kPages - 1}) {
        const Mapping memory = replaceable(Kind::Private, kPages * page_size());
        memory.fill('A');
        char *const start = memory.data(), *const hole = start + gone * page_size();
        Region open = card.reg(start, memory.size());
        cr_assert(munmap(hole, page_size()) == 0);
        for (std::size_t page = 0; page < kPages; ++page)
            if (page != gone) {
                start[page * page_size()] = static_cast<char>('a' + page);
                cr_expect(seen(open, start + page * page_size()) == static_cast<char>('a' + page), "page %zu is still there", page);
            }
        int error = 0;
        card.reg(start, memory.size(), kAllRights, &error);
        cr_expect(error == -FI_EFAULT, "there is a hole: %s", fi_strerror(-error));
        cr_assert(map_at(hole, page_size()));
        hole[0] = 'H';
        const Region whole = card.reg(start, memory.size());
        cr_expect(whole && seen(whole, hole) == 'H');
        cr_expect(seen(card.reg(hole, 1), hole) == 'H');
        cr_expect(open.close() == 0);
        cr_expect(seen(card.reg(start, memory.size()), hole) == 'H');
    }
}

Test(stale, in_no_domain_of_the_process)
{
    Wish wish = over_pin();
    wish.domain = "pin1";
    Card first(over_pin()), second(over_pin()), third(wish);
    for (int round = 0; round < 100; ++round) {
        const Mapping memory = replaceable(Kind::Private, kPages * page_size());
        memory.fill('A');
        for (Card *card : {&first, &second, &third})
            cr_expect(card->reg(memory.data(), memory.size()));
        cr_assert(replace_by_unmapping(memory.data(), memory.size()));
        memory.fill('B');
        for (Card *card : {&third, &first, &second})
            cr_expect(is_seen(card->reg(memory.data(), memory.size()), memory.data(), memory.size(), 'B'), "round %d", round);
    }
    // One domain's end silences no other.
    const Mapping memory = replaceable(Kind::Private, page_size());
    memory.fill('A');
    for (Card *card : {&first, &second})
        cr_expect(card->reg(memory.data(), memory.size()));
    cr_expect(first.close() == 0);
    cr_assert(replace_by_unmapping(memory.data(), memory.size()));
    memory.fill('B');
    cr_expect(seen(second.reg(memory.data(), memory.size()), memory.data()) == 'B');
}
