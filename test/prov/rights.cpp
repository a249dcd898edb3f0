// SPDX-License-Identifier: BSD-2-Clause
// Rights are least privilege: a registration serves who asks for no more than it has, and nothing is registered with more
// than was asked for.
#include "prov/far_away.hpp"
#include "prov/over_pin.hpp"
#include "support/watchdog.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include <criterion/criterion.h>

using namespace regcache::test;

namespace {

constexpr std::uint64_t kBits[] = {FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE};

// The subset that the lowest six bits of `number` name.
std::uint64_t subset(unsigned number)
{
    std::uint64_t access = 0;
    for (unsigned bit = 0; bit < 6; ++bit)
        if ((number >> bit & 1) != 0)
            access |= kBits[bit];
    return access;
}

constexpr char kConstant[3 * 4096] = "constant data";

} // namespace

TestSuite(rights, .init = need_pin);

Test(rights, each_set_after_each_other)
{
    const Watchdog watchdog("every pair of rights");
    Card card(over_pin());
    Mapping memory = replaceable(Kind::Private, page_size());
    memory.fill('A');
    const auto address = reinterpret_cast<std::uint64_t>(memory.data());
    for (unsigned first = 1; first < 64; ++first)
        for (unsigned second = 1; second < 64; ++second) {
            const std::uint64_t has = subset(first), wants = subset(second);
            const bool is_covered = (has & wants) == wants;
            pin->reset();
            const Region a = card.reg(memory.data(), page_size(), has);
            const Region b = card.reg(memory.data(), page_size(), wants);
            cr_assert(a && b);
            cr_assert(look(a).access == has, "%#lx was asked for, %#lx is registered", has, look(a).access);
            cr_assert(look(b).access == (is_covered ? has : wants), "%#lx after %#lx: %#lx is registered", wants, has,
                      look(b).access);
            cr_assert(registered() == (is_covered ? 1 : 2), "%#lx after %#lx", wants, has);
            // What was asked for works.
            char byte = 0;
            if ((wants & (FI_SEND | FI_WRITE | FI_REMOTE_READ)) != 0)
                cr_assert(pin->read(fi_mr_desc(b.get()), memory.data(), &byte, 1) == 1 && byte == 'A');
            if ((wants & (FI_RECV | FI_READ | FI_REMOTE_WRITE)) != 0)
                cr_assert(pin->write(fi_mr_desc(b.get()), memory.data(), "A", 1) == 1);
            cr_assert(pin->remote_read(fi_mr_key(a.get()), address, &byte, 1) == ((has & FI_REMOTE_READ) ? 1 : -EACCES));
            cr_assert(pin->remote_write(fi_mr_key(a.get()), address, "A", 1) == ((has & FI_REMOTE_WRITE) ? 1 : -EACCES));
            // Other pages for the next pair: nothing of this one serves it.
            char *const start = memory.data();
            memory.unmap();
            memory = Mapping(Kind::Private, page_size(), start);
            memory.fill('A');
        }
}

Test(rights, no_rights_at_all_work_as_below)
{
    Card card(over_pin()), below;
    const Mapping memory(Kind::Private, page_size());
    int error = 0, error_below = 0;
    card.reg(memory.data(), page_size(), 0, &error);
    below.reg(memory.data(), page_size(), 0, &error_below);
    cr_expect(error == error_below);
}

Test(rights, a_wider_registration_serves_both)
{
    Card card(over_pin());
    const Mapping memory(Kind::Private, page_size());
    cr_expect(card.reg(memory.data(), page_size(), FI_SEND));
    cr_expect(card.reg(memory.data(), page_size(), FI_RECV));
    cr_expect(card.reg(memory.data(), page_size(), FI_SEND | FI_RECV));
    cr_expect(registered() == 3);
    for (const std::uint64_t access : {std::uint64_t{FI_SEND}, std::uint64_t{FI_RECV}, std::uint64_t{FI_SEND | FI_RECV}})
        cr_expect(card.reg(memory.data(), page_size(), access));
    cr_expect(registered() == 3);
    cr_expect(pin_count().live == 1, "the narrow ones were given back");
}

Test(rights, constant_data_is_a_send_buffer)
{
    Card card(over_pin());
    for (int i = 0; i < 3; ++i) {
        const Region region = card.reg(kConstant, sizeof(kConstant), FI_SEND | FI_WRITE | FI_REMOTE_READ);
        cr_assert(region);
        cr_expect(seen(region, kConstant) == 'c');
        cr_expect(look(region).access == (FI_SEND | FI_WRITE | FI_REMOTE_READ));
    }
}

Test(rights, read_only_memory_is_a_send_buffer)
{
    Card card(over_pin());
    for (const Kind kind : {Kind::Private, Kind::FilePrivate, Kind::FileShared, Kind::Memfd, Kind::Shared}) {
        const Mapping memory(kind, 4 * page_size());
        memory.fill('R');
        memory.protect(PROT_READ);
        for (int i = 0; i < 3; ++i) {
            const Region region = card.reg(memory.data(), memory.size(), FI_SEND);
            cr_assert(region, "%s", name_of(kind));
            cr_expect(seen(region, memory.data() + 3 * page_size()) == 'R', "%s", name_of(kind));
        }
    }
}

Test(rights, a_file_that_is_open_for_reading_is_a_send_buffer)
{
    Card card(over_pin());
    FILE *const file = std::tmpfile();
    cr_assert(file);
    for (int i = 0; i < 8192; ++i)
        std::fputc('F', file);
    std::fflush(file);
    for (const int sharing : {MAP_PRIVATE, MAP_SHARED}) {
        void *const start = mmap(nullptr, 8192, PROT_READ, sharing, fileno(file), 0);
        cr_assert(start != MAP_FAILED);
        for (int i = 0; i < 3; ++i) {
            const Region region = card.reg(start, 8192, FI_SEND);
            cr_assert(region);
            cr_expect(seen(region, start) == 'F');
        }
        munmap(start, 8192);
    }
    std::fclose(file);
}

// The lower provider's own word, whatever is cached already.
Test(rights, read_only_memory_as_a_receive_buffer_fails_as_below)
{
    Card card(over_pin());
    const Mapping memory(Kind::Private, page_size());
    memory.fill('R');
    memory.protect(PROT_READ);
    const Region send = card.reg(memory.data(), page_size(), FI_SEND);
    cr_expect(send);
    for (const std::uint64_t access : {std::uint64_t{FI_RECV}, std::uint64_t{FI_READ}, std::uint64_t{FI_SEND | FI_RECV}}) {
        int error = 0;
        cr_expect(!card.reg(memory.data(), page_size(), access, &error));
        cr_expect(error == -FI_EFAULT, "%s", fi_strerror(-error));
    }
    pin->demand_write(1);
    int error = 0;
    cr_expect(!card.reg(kConstant, sizeof(kConstant), FI_SEND, &error));
    cr_expect(error == -FI_EFAULT, "%s", fi_strerror(-error));
    const Region again = card.reg(memory.data(), page_size(), FI_SEND);
    cr_expect(again, "what is registered is registered");
}

// mprotect takes no page away: what is pinned stays pinned, and a right that memory has lost is the application's to know.
Test(rights, memory_that_becomes_writable_is_registered_for_it)
{
    Card card(over_pin());
    const Mapping memory(Kind::Private, page_size());
    memory.fill('R');
    memory.protect(PROT_READ);
    cr_expect(card.reg(memory.data(), page_size(), FI_SEND));
    memory.protect(PROT_READ | PROT_WRITE);
    const Region region = card.reg(memory.data(), page_size(), FI_SEND | FI_RECV);
    cr_assert(region);
    cr_expect(pin->write(fi_mr_desc(region.get()), memory.data(), "W", 1) == 1);
    cr_expect(memory.data()[0] == 'W');
}

// A provider that gives less than it was asked for does so with the cache as without it.
Test(rights, short_rights_are_short_as_below)
{
    pin->narrow_access(FI_SEND);
    for (const Wish &wish : {Wish{}, over_pin()}) {
        Card card(wish);
        const Mapping memory(Kind::Private, page_size());
        const Region region = card.reg(memory.data(), page_size(), FI_SEND | FI_RECV);
        cr_assert(region);
        cr_expect(look(region).access == (FI_SEND | FI_RECV) && look(region).given_access == FI_SEND);
        char byte;
        cr_expect(pin->read(fi_mr_desc(region.get()), memory.data(), &byte, 1) == 1);
        cr_expect(pin->write(fi_mr_desc(region.get()), memory.data(), "W", 1) == -EACCES);
    }
}
