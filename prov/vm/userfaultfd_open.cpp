// SPDX-License-Identifier: BSD-2-Clause
// Tries the three ways to a userfaultfd, and asks for features that this kernel has.
#include "vm/userfaultfd_open.hpp"

#include "sys/error.hpp"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif

namespace regcache {
namespace {

// include/uapi/linux/userfaultfd.h; older headers lack the newer ones.
constexpr __u64 kPagefaultFlagWp = 1u << 0;
constexpr __u64 kWpHugeShmem = 1u << 12;
constexpr __u64 kWpUnpopulated = 1u << 13;
constexpr __u64 kWpAsync = 1u << 15;
constexpr __u64 kEvents = UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_UNMAP;

int from_device() noexcept
{
    const Fd device(::open("/dev/userfaultfd", O_RDWR | O_CLOEXEC));
    return device ? ioctl(device.number(), USERFAULTFD_IOC_NEW, O_CLOEXEC | O_NONBLOCK) : -1;
}

int from_call(int flags) noexcept
{
    return static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | flags));
}

Fd open_any()
{
    if (Fd fd{from_device()})
        return fd;
    if (Fd fd{from_call(0)})
        return fd;
    if (Fd fd{from_call(UFFD_USER_MODE_ONLY)})
        return fd;
    const int error = errno;
    std::string remedy;
    if (error == ENOSYS)
        remedy = "the kernel was built without it, or a seccomp filter hides it";
    else if (error == EPERM || error == EACCES)
        remedy = "a seccomp filter or the sysctl vm.unprivileged_userfaultfd forbids it: allow the call in the "
                 "container's seccomp profile, or give the user access to /dev/userfaultfd";
    else
        remedy = "see userfaultfd(2)";
    throw Error(error, std::string("userfaultfd can't be opened (") + std::strerror(error) + "): " + remedy);
}

__u64 features_of_kernel()
{
    const Fd probe = open_any(); // the question can be asked once for each descriptor
    uffdio_api api{};
    api.api = UFFD_API;
    if (ioctl(probe.number(), UFFDIO_API, &api) != 0)
        throw Error(errno, std::string("userfaultfd doesn't tell its features: ") + std::strerror(errno));
    return api.features;
}

} // namespace

Fd open_userfaultfd()
{
    const __u64 has = features_of_kernel();
    const __u64 needed = kEvents | kPagefaultFlagWp;
    if ((has & needed) != needed)
        throw Error(ENOSYS, "userfaultfd of this kernel tells of no mapping changes: Linux 5.7 or newer, built with "
                            "CONFIG_HAVE_ARCH_USERFAULTFD_WP, is needed");
    Fd uffd = open_any();
    uffdio_api api{};
    api.api = UFFD_API;
    api.features = kEvents | (has & (kPagefaultFlagWp | kWpHugeShmem | kWpUnpopulated | kWpAsync));
    if (ioctl(uffd.number(), UFFDIO_API, &api) != 0)
        throw Error(errno, std::string("userfaultfd refuses to tell of mapping changes: ") + std::strerror(errno));
    return uffd;
}

} // namespace regcache
