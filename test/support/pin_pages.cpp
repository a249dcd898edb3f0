// SPDX-License-Identifier: BSD-2-Clause
// Does the pin provider hold the pages that were there when they were registered? The other tests stand on that.
#include "support/base.hpp"
#include "support/fabric.hpp"
#include "support/memory.hpp"
#include "support/pin/pin.h"
#include "support/skip.hpp"
#include "support/watchdog.hpp"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <criterion/criterion.h>

using namespace regcache::test;

namespace {

const pin_ops *pin;

void find_pin()
{
    pin = pin_find();
    cr_assert(pin, "libfabric doesn't load libpin-fi.so from FI_PROVIDER_PATH");
    char why[256];
    if (pin->unusable(why, sizeof(why)))
        skip(why);
}

pin_counters count()
{
    pin_counters counters;
    pin->counters(&counters);
    return counters;
}

std::string read_through(const Region &region, const void *address, std::size_t len)
{
    std::string bytes(len, '?');
    const ssize_t got = pin->read(fi_mr_desc(region.get()), address, bytes.data(), len);
    return got == static_cast<ssize_t>(len) ? bytes : "error " + std::to_string(-got);
}

} // namespace

TestSuite(pin_pages, .init = find_pin);

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

Test(pin_pages, refuses_what_lies_outside_and_what_the_rights_forbid)
{
    Card card;
    const Mapping memory(Kind::Private, 2 * page_size());
    memory.fill('A');
    char byte = 0;
    {
        const Region region = card.reg(memory.data() + 100, page_size());
        void *desc = fi_mr_desc(region.get());
        cr_expect(pin->read(desc, memory.data() + 99, &byte, 1) == -EFAULT);
        cr_expect(pin->read(desc, memory.data() + 100 + page_size(), &byte, 1) == -EFAULT);
        std::vector<char> more(page_size() + 1);
        cr_expect(pin->read(desc, memory.data() + 100, more.data(), more.size()) == -EFAULT);
        cr_expect(pin->remote_read(fi_mr_key(region.get()) + 12345, 0, &byte, 1) == -ENOKEY);
    }
    {
        const Region region = card.reg(memory.data(), page_size(), FI_SEND);
        void *desc = fi_mr_desc(region.get());
        const auto address = reinterpret_cast<std::uint64_t>(memory.data());
        cr_expect(pin->read(desc, memory.data(), &byte, 1) == 1);
        cr_expect(pin->write(desc, memory.data(), "x", 1) == -EACCES);
        cr_expect(pin->remote_read(fi_mr_key(region.get()), address, &byte, 1) == -EACCES);
        cr_expect(pin->remote_write(fi_mr_key(region.get()), address, "x", 1) == -EACCES);
    }
    {
        const Region region = card.reg(memory.data(), page_size(), FI_RECV);
        cr_expect(pin->read(fi_mr_desc(region.get()), memory.data(), &byte, 1) == -EACCES);
        cr_expect(pin->peek(fi_mr_desc(region.get()), memory.data(), &byte, 1) == 1);
    }
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
    cr_assert(is_pinned_back_at(0)); // Linux 6.1 unpins a little after the call, which matters after find_pin's probe
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
        cr_expect(count().live == 1);
        cr_expect(count().bytes == memory.size());
        std::vector<Region> many;
        for (int at = 0; at < 1000; ++at)
            many.push_back(card.reg(memory.data(), page_size()));
        cr_expect(count().live == 1001);
    }
    cr_expect(count().live == 0);
    cr_expect(count().bytes == 0);
    cr_expect(count().objects == 0);
    cr_expect(count().most_live == 1001);
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

Test(pin_pages, holds_read_only_memory_for_rights_that_only_read)
{
    const Watchdog watchdog("read-only memory");
    Card card;
    static const char text[] = "constant data";
    {
        const Region region = card.reg(text, sizeof(text), FI_SEND | FI_WRITE | FI_REMOTE_READ);
        cr_assert(region);
        cr_expect(read_through(region, text, sizeof(text)) == std::string(text, sizeof(text)));
        pin_region seen;
        cr_assert(pin->look(fi_mr_desc(region.get()), &seen) == 0);
        cr_expect(seen.held_pages == 1);
        cr_expect(seen.access == (FI_SEND | FI_WRITE | FI_REMOTE_READ));
    }
    int error = 0;
    card.reg(text, sizeof(text), FI_SEND | FI_RECV, &error);
    cr_expect(error == -FI_EFAULT, "%d", error);
    pin->demand_write(1);
    card.reg(text, sizeof(text), FI_SEND, &error);
    cr_expect(error == -FI_EFAULT, "%d", error);
    pin->reset();

    // More than one pipe of pages, and stale afterwards.
    Mapping memory(Kind::Private, 600 * page_size());
    char *start = memory.data();
    const std::size_t len = memory.size();
    memory.fill('A');
    memory.protect(PROT_READ);
    const Region region = card.reg(start, len, FI_SEND);
    cr_assert(region);
    memory.unmap();
    const Mapping again(Kind::Private, len, start);
    again.fill('B');
    cr_expect(read_through(region, start, len) == std::string(len, 'A'));
    cr_expect(read_through(region, start + 300 * page_size() - 5, 10) == std::string(10, 'A'));
    cr_expect(pin->write(fi_mr_desc(region.get()), start, "x", 1) == -EACCES);
}

Test(pin_pages, unmapped_memory_is_refused)
{
    Card card;
    const Mapping memory(Kind::Private, page_size());
    char *start = memory.data();
    memory.protect(PROT_NONE);
    int error = 0;
    card.reg(start, page_size(), FI_SEND, &error);
    cr_expect(error == -FI_EFAULT);
    // The second page of the address space is never mapped.
    card.reg(reinterpret_cast<void *>(page_size()), page_size(), kAllRights, &error);
    cr_expect(error == -FI_EFAULT);
    card.reg(start, 0, kAllRights, &error);
    cr_expect(error == -FI_EINVAL);
    cr_expect(count().live == 0);
}

Test(pin_pages, says_one_line_where_io_uring_is_forbidden)
{
    // Each test is a process of its own: the filter ends with it.
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    sock_fprog filter{sizeof(program) / sizeof(program[0]), program};
    cr_assert(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        skip("no seccomp filter can be set here");
    char why[256] = "";
    cr_expect(pin->unusable(why, sizeof(why)) == -EPERM);
    cr_expect(std::strstr(why, "seccomp") || std::strstr(why, "sysctl"), "%s", why);
    cr_expect(!std::strchr(why, '\n'));
    cr_expect(!find_info(Wish{}));
}

Test(pin_pages, an_ordinary_user_gets_enomem_at_rlimit_memlock)
{
    if (geteuid() != 0)
        skip("only root can become an ordinary user for this");
    skip_under_sanitizer("its run time doesn't survive a change of user in a child");
    const pid_t child = fork();
    if (child == 0) {
        const rlimit small{256 << 10, 256 << 10};
        if (setrlimit(RLIMIT_MEMLOCK, &small) != 0 || setresuid(65534, 65534, 65534) != 0)
            _exit(2);
        char why[256];
        if (pin->unusable(why, sizeof(why)))
            _exit(77);
        Card card;
        const Mapping memory(Kind::Private, 1 << 20);
        int error = 0;
        const Region big = card.reg(memory.data(), memory.size(), kAllRights, &error);
        const int error_big = error;
        const Region fits = card.reg(memory.data(), 4 * page_size(), kAllRights, &error);
        _exit(error_big == -FI_ENOMEM && error == 0 ? 0 : 1);
    }
    int status = 0;
    cr_assert(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip("an ordinary user may not use io_uring here");
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d", status);
}
