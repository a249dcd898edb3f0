// SPDX-License-Identifier: BSD-2-Clause
// Does the pin provider hold the pages that were there when they were registered? The other tests stand on that.
#include "support/base.hpp"
#include "support/fabric.hpp"
#include "support/memory.hpp"
#include "support/pin/use.hpp"
#include "support/skip.hpp"
#include "support/watchdog.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <criterion/criterion.h>

using namespace regcache::test;

namespace {

std::string read_through(const Region &region, const void *address, std::size_t len)
{
    std::string bytes(len, '?');
    const ssize_t got = pin->read(fi_mr_desc(region.get()), address, bytes.data(), len);
    return got == static_cast<ssize_t>(len) ? bytes : "error " + std::to_string(-got);
}

} // namespace

TestSuite(pin_pages, .init = need_pin);

Test(pin_pages, reads_what_is_there_and_shows_stale_pages_after_unmap_and_map)
{
    const Watchdog watchdog("stale pages");
    Card card;
    for (const Kind kind : all_kinds()) {
        try {
            Mapping memory(kind, 64 * page_size());
            char *start = memory.data();
            const std::size_t len = memory.size();
            memory.fill('A');
            int error = 0;
            const Region region = card.reg(start, len, kAllRights, &error);
            if (error == -FI_EOPNOTSUPP || error == -FI_EFAULT) {
                cr_log_info("%s can't be pinned here: %s", name_of(kind), fi_strerror(-error));
                continue;
            }
            cr_assert(error == 0, "%s: %s", name_of(kind), fi_strerror(-error));
            cr_expect(read_through(region, start, len) == std::string(len, 'A'), "%s", name_of(kind));
            memory.fill('B');
            cr_expect(read_through(region, start + 7, 5) == "BBBBB", "%s", name_of(kind));

            memory.unmap();
            const Mapping again(kind, len, start);
            again.fill('C');
            cr_expect(read_through(region, start, len) == std::string(len, 'B'), "%s: the old pages aren't shown", name_of(kind));
            std::vector<char> plain(len, '?');
            cr_expect(pin->remote_read(fi_mr_key(region.get()), reinterpret_cast<std::uint64_t>(start), plain.data(), len) ==
                      static_cast<ssize_t>(len));
            cr_expect(std::string(plain.data(), len) == std::string(len, 'B'), "%s", name_of(kind));
            const Region fresh = card.reg(start, len);
            cr_expect(read_through(fresh, start, len) == std::string(len, 'C'), "%s", name_of(kind));
        } catch (const Unavailable &missing) {
            cr_log_info("%s: %s", name_of(kind), missing.what());
        }
    }
}

Test(pin_pages, writes_into_the_registered_pages)
{
    Card card;
    const Mapping memory(Kind::Private, 40 * page_size());
    memory.fill('A');
    const Region region = card.reg(memory.data(), memory.size());
    const std::string text(20 * page_size() + 11, 'W');
    cr_assert(pin->write(fi_mr_desc(region.get()), memory.data() + 3, text.data(), text.size()) ==
              static_cast<ssize_t>(text.size()));
    cr_expect(std::string(memory.data() + 3, text.size()) == text);
    cr_expect(memory.data()[2] == 'A');
    cr_expect(memory.data()[3 + text.size()] == 'A');
    cr_assert(pin->remote_write(fi_mr_key(region.get()), reinterpret_cast<std::uint64_t>(memory.data()), "peer", 4) == 4);
    cr_expect(std::memcmp(memory.data(), "peer", 4) == 0);

    // A write through a stale registration doesn't reach who owns the address now.
    Mapping owned(Kind::Private, page_size());
    char *start = owned.data();
    owned.fill('A');
    const Region stale = card.reg(start, page_size());
    owned.unmap();
    const Mapping other(Kind::Private, page_size(), start);
    other.fill('C');
    cr_assert(pin->write(fi_mr_desc(stale.get()), start, "XXXX", 4) == 4);
    cr_expect(other.data()[0] == 'C');
}

Test(pin_pages, a_closed_descriptor_is_never_good_again)
{
    Card card;
    const Mapping memory(Kind::Private, page_size());
    Region region = card.reg(memory.data(), page_size());
    void *desc = fi_mr_desc(region.get());
    const std::uint64_t key = fi_mr_key(region.get());
    cr_assert(region.close() == 0);
    char byte;
    cr_expect(pin->read(desc, memory.data(), &byte, 1) == -EINVAL);
    cr_expect(pin->remote_read(key, reinterpret_cast<std::uint64_t>(memory.data()), &byte, 1) == -ENOKEY);
    for (int again = 0; again < 100; ++again) {
        const Region other = card.reg(memory.data(), page_size());
        cr_assert(fi_mr_desc(other.get()) != desc);
        cr_assert(fi_mr_key(other.get()) != key);
    }
}

Test(pin_pages, pins_and_unpins_and_goes_back_to_base)
{
    const Watchdog watchdog("back to base");
    pin->reset();
    cr_assert(is_pinned_back_at(0)); // Linux 6.1 unpins a little after the call, which matters after need_pin's probe
    const Base before = measure_base();
    {
        Card card;
        const Mapping memory(Kind::Private, 256 * page_size());
        madvise(memory.data(), memory.size(), MADV_NOHUGEPAGE);
        memory.fill('A');
        const Region region = card.reg(memory.data(), memory.size());
        // Linux 7.2 counts no pins of processes with CAP_IPC_LOCK.
        const std::size_t pinned_kib = measure_base().pinned_kib;
        cr_expect(pinned_kib >= memory.size() / 1024 || (pinned_kib == 0 && geteuid() == 0), "%zu KiB", pinned_kib);
        cr_expect(pin_count().live == 1);
        cr_expect(pin_count().bytes == memory.size());
        std::vector<Region> many;
        for (int at = 0; at < 1000; ++at)
            many.push_back(card.reg(memory.data(), page_size()));
        cr_expect(pin_count().live == 1001);
    }
    cr_expect(pin_count().live == 0);
    cr_expect(pin_count().bytes == 0);
    cr_expect(pin_count().objects == 0);
    cr_expect(pin_count().most_live == 1001);
    cr_expect(is_back_at_base(before));
}

Test(pin_pages, takes_more_registrations_than_one_table_has_slots)
{
    const Watchdog watchdog("many registrations");
    Card card;
    const Mapping memory(Kind::Private, 4 * page_size());
    memory.fill('A');
    std::vector<Region> many;
    for (int at = 0; at < 16384 + 100; ++at) {
        int error = 0;
        many.push_back(card.reg(memory.data(), page_size(), kAllRights, &error));
        cr_assert(error == 0, "registration %d: %s", at, fi_strerror(-error));
    }
    cr_expect(read_through(many.front(), memory.data(), 3) == "AAA");
    cr_expect(read_through(many.back(), memory.data(), 3) == "AAA");
}

Test(pin_pages, reads_several_iovs_and_offsets_without_virtual_addresses)
{
    Wish wish;
    wish.mr_mode = FI_MR_LOCAL;
    setenv("FI_PIN_MR_MODE", "local", 1);
    Card card(wish);
    const Mapping one(Kind::Private, page_size());
    const Mapping two(Kind::Private, page_size());
    one.fill('1');
    two.fill('2');
    const iovec iov[] = {{one.data(), 100}, {two.data(), 100}};
    fi_mr_attr attr{};
    attr.mr_iov = iov;
    attr.iov_count = 2;
    attr.access = kAllRights;
    attr.requested_key = 77;
    const Region region = card.regattr(attr);
    cr_assert(region);
    cr_expect(fi_mr_key(region.get()) == 77);
    char bytes[4];
    cr_assert(pin->remote_read(77, 96, bytes, 4) == 4);
    cr_expect(std::memcmp(bytes, "1111", 4) == 0);
    cr_assert(pin->remote_read(77, 100, bytes, 4) == 4);
    cr_expect(std::memcmp(bytes, "2222", 4) == 0);
    cr_expect(pin->remote_read(77, 200, bytes, 1) == -EFAULT);
    int error = 0;
    const Region same_key = card.regattr(attr, 0, &error);
    cr_expect(error == -FI_ENOKEY);
}
