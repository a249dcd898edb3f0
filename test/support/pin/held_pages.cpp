// SPDX-License-Identifier: BSD-2-Clause
// Pages held by pipes (held_pages.hpp).
#include "held_pages.hpp"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

namespace pin {

namespace {

constexpr int kPipeSize = 1 << 20; // what an ordinary user may ask for: 256 pages

int open_pipe(int (&ends)[2])
{
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return -errno;
    fcntl(ends[1], F_SETPIPE_SZ, kPipeSize); // a smaller one holds less, which hold() sees
    return 0;
}

void close_pipe(const int (&ends)[2])
{
    ::close(ends[0]);
    ::close(ends[1]);
}

} // namespace

HeldPages::~HeldPages()
{
    for (const Part &part : parts_)
        close_pipe(part.pipe);
}

int HeldPages::hold(const void *start, std::size_t len)
{
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    auto from = reinterpret_cast<std::uintptr_t>(start) & ~(page - 1);
    const auto to = (reinterpret_cast<std::uintptr_t>(start) + len + page - 1) & ~(page - 1);
    if (to - from > kMaxLen)
        return -ENOMEM;
    while (from < to) {
        Part part{{-1, -1}, reinterpret_cast<const char *>(from), 0};
        const int opened = open_pipe(part.pipe);
        if (opened)
            return opened;
        parts_.push_back(part);
        Part &filled = parts_.back();
        while (from < to) {
            iovec range{reinterpret_cast<void *>(from), to - from};
            const ssize_t put = vmsplice(filled.pipe[1], &range, 1, SPLICE_F_NONBLOCK);
            if (put > 0) {
                filled.len += static_cast<std::size_t>(put);
                from += static_cast<std::uintptr_t>(put);
            } else if (put < 0 && errno == EAGAIN && filled.len > 0) {
                break; // full
            } else if (!(put < 0 && errno == EINTR)) {
                return put < 0 ? -errno : -EFAULT;
            }
        }
    }
    return 0;
}

ssize_t HeldPages::copy_part(const Part &part, std::size_t offset, char *buffer, std::size_t len)
{
    int copy[2];
    const int opened = open_pipe(copy);
    if (opened)
        return opened;
    // tee doubles the references from the pipe's front and leaves the pipe as it is; what comes before `offset` is skipped.
    const ssize_t doubled = tee(part.pipe[0], copy[1], part.len, SPLICE_F_NONBLOCK);
    ssize_t result = doubled < 0 ? -errno : 0;
    std::size_t at = 0;
    char skipped[4096];
    while (result >= 0 && at < offset + len) {
        const bool is_before = at < offset;
        const std::size_t want = is_before ? std::min(offset - at, sizeof(skipped)) : offset + len - at;
        const ssize_t got = ::read(copy[0], is_before ? skipped : buffer + (at - offset), want);
        if (got <= 0)
            result = got < 0 ? -errno : -EIO;
        else
            at += static_cast<std::size_t>(got);
    }
    close_pipe(copy);
    return result < 0 ? result : static_cast<ssize_t>(len);
}

ssize_t HeldPages::copy_out(const void *address, void *buffer, std::size_t len) const
{
    const auto *wanted = static_cast<const char *>(address);
    std::size_t copied = 0;
    for (const Part &part : parts_) {
        if (copied == len)
            break;
        const char *next = wanted + copied;
        if (next < part.start || next >= part.start + part.len)
            continue;
        const auto offset = static_cast<std::size_t>(next - part.start);
        const std::size_t now = std::min(len - copied, part.len - offset);
        const ssize_t got = copy_part(part, offset, static_cast<char *>(buffer) + copied, now);
        if (got < 0)
            return got;
        copied += now;
    }
    return copied == len ? static_cast<ssize_t>(len) : -EFAULT;
}

} // namespace pin
