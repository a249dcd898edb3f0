// SPDX-License-Identifier: BSD-2-Clause
// What can't be pinned, and what can't be reached through a registration.
#include "support/fabric.hpp"
#include "support/memory.hpp"
#include "support/pin/use.hpp"
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

TestSuite(pin_limits, .init = need_pin);

Test(pin_limits, holds_read_only_memory_for_rights_that_only_read)
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

Test(pin_limits, unmapped_memory_is_refused)
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
    cr_expect(pin_count().live == 0);
}

Test(pin_limits, says_one_line_where_io_uring_is_forbidden)
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

Test(pin_limits, an_ordinary_user_gets_enomem_at_rlimit_memlock)
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

Test(pin_limits, refuses_what_lies_outside_and_what_the_rights_forbid)
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
