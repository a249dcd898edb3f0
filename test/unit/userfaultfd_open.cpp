// SPDX-License-Identifier: BSD-2-Clause
// vm/userfaultfd_open.cpp: every way to a userfaultfd, and what is said when all are barred. What a thread is refused here
// it alone is refused.
#include "vm/userfaultfd_open.hpp"

#include "prov/refusals.hpp"
#include "support/real_sources.hpp"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <string>

#include <criterion/criterion.h>

using namespace regcache;
using namespace regcache::test;

namespace {

constexpr unsigned kNobody = 65534;

struct Opened {
    int code = 0; // 0: it was opened
    std::string what;
    bool says(const std::string &words) const { return what.find(words) != std::string::npos; }
};

Opened open_here()
{
    try {
        const Fd fd = open_userfaultfd();
        return {fd ? 0 : -1, ""};
    } catch (const Error &error) {
        return {error.code(), error.what()};
    }
}

void need_userfaultfd()
{
    if (const Opened opened = open_here(); opened.code != 0)
        skip(opened.what);
}

// As a user who may not open the device; nothing changes for one who is that already.
bool become_nobody()
{
    if (syscall(SYS_getuid) == 0)
        syscall(SYS_setresuid, kNobody, kNobody, kNobody);
    return access("/dev/userfaultfd", R_OK | W_OK) != 0;
}

Opened open_refused(std::initializer_list<std::pair<int, std::uint32_t>> calls, int error)
{
    Opened opened;
    on_own_thread([&] {
        if (!become_nobody()) {
            opened.code = -1;
            return;
        }
        for (const auto &[call, command] : calls)
            if (!refuse(call, command, error))
                opened.code = -1;
        if (opened.code == 0)
            opened = open_here();
    });
    if (opened.code == -1)
        skip("anybody may open /dev/userfaultfd here, or no seccomp filter can be set");
    return opened;
}

} // namespace

TestSuite(userfaultfd_open, .init = need_userfaultfd);

Test(userfaultfd_open, descriptor_blocks_nobody_and_is_closed_by_exec)
{
    const Fd fd = open_userfaultfd();
    cr_expect((fcntl(fd.number(), F_GETFL) & O_NONBLOCK) != 0);
    cr_expect((fcntl(fd.number(), F_GETFD) & FD_CLOEXEC) != 0);
    cr_expect(ioctl(fd.number(), UFFDIO_API, nullptr) != 0); // its features are chosen already
}

Test(userfaultfd_open, leaves_no_descriptor_behind)
{
    const unsigned before = measure_base().descriptors;
    for (int i = 0; i < 10; ++i)
        cr_expect(open_here().code == 0);
    cr_expect(measure_base().descriptors == before);
}

// The device is there for users whom the system call is refused, and the other way round.
Test(userfaultfd_open, device_is_enough)
{
    if (access("/dev/userfaultfd", R_OK | W_OK) != 0)
        skip("/dev/userfaultfd can't be opened by this user");
    on_own_thread([] {
        if (refuse(SYS_userfaultfd, kAnyCommand, EPERM))
            cr_expect(open_here().code == 0);
    });
}

Test(userfaultfd_open, system_call_is_enough)
{
    on_own_thread([] {
        if (refuse(SYS_openat, kAnyCommand, EACCES))
            cr_expect(open_here().code == 0);
    });
}

Test(userfaultfd_open, user_nobody_gets_one)
{
    const Opened opened = open_refused({}, 0);
    cr_expect(opened.code == 0, "%s", opened.what.c_str());
}

Test(userfaultfd_open, refusals_name_their_remedy)
{
    const Opened by_filter = open_refused({{SYS_userfaultfd, kAnyCommand}}, EPERM);
    cr_expect(by_filter.code == EPERM && by_filter.says("seccomp") && by_filter.says("sysctl"), "%s", by_filter.what.c_str());
    const Opened by_mode = open_refused({{SYS_userfaultfd, kAnyCommand}}, EACCES);
    cr_expect(by_mode.code == EACCES && by_mode.says("access to /dev/userfaultfd"), "%s", by_mode.what.c_str());
    const Opened not_built = open_refused({{SYS_userfaultfd, kAnyCommand}}, ENOSYS);
    cr_expect(not_built.code == ENOSYS && not_built.says("the kernel was built without it"), "%s", not_built.what.c_str());
    const Opened otherwise = open_refused({{SYS_userfaultfd, kAnyCommand}}, ENFILE);
    cr_expect(otherwise.code == ENFILE && otherwise.says("userfaultfd(2)"), "%s", otherwise.what.c_str());
}

Test(userfaultfd_open, kernel_that_refuses_its_features_is_named)
{
    const auto api = static_cast<std::uint32_t>(UFFDIO_API);
    const Opened opened = open_refused({{SYS_ioctl, api}}, EINVAL);
    cr_expect(opened.code == EINVAL && opened.says("doesn't tell its features"), "%s", opened.what.c_str());
}

// The answer is there, and says nothing of mapping events.
Test(userfaultfd_open, kernel_without_mapping_events_is_named)
{
    const auto api = static_cast<std::uint32_t>(UFFDIO_API);
    const Opened opened = open_refused({{SYS_ioctl, api}}, 0);
    cr_expect(opened.code == ENOSYS && opened.says("Linux 5.7"), "%s", opened.what.c_str());
}
