// SPDX-License-Identifier: BSD-2-Clause
// Pages pinned through io_uring (ring.hpp).
#include "ring.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

namespace pin {

namespace {

// What fits an empty pipe of the default size even when the bytes don't begin on a page.
constexpr std::size_t kChunk = 15 * 4096;

[[noreturn]] void fail(int error, const char *what) { throw std::system_error(error, std::generic_category(), what); }

int io_uring_disabled()
{
    int value = 0;
    if (FILE *file = std::fopen("/proc/sys/kernel/io_uring_disabled", "re")) {
        if (std::fscanf(file, "%d", &value) != 1)
            value = 0;
        std::fclose(file);
    }
    return value;
}

} // namespace

Ring::Ring()
{
    const int made = io_uring_queue_init(4, &ring_, 0);
    if (made < 0)
        fail(-made, "io_uring_setup");
    const int sized = io_uring_register_buffers_sparse(&ring_, kSlots);
    if (sized < 0) {
        io_uring_queue_exit(&ring_);
        fail(-sized, "a sparse table of io_uring buffers");
    }
    // Never full and never empty when used: nothing blocks, and the kernel needs no worker thread.
    if (pipe2(pipe_, O_CLOEXEC | O_NONBLOCK) != 0) {
        const int error = errno;
        io_uring_queue_exit(&ring_);
        fail(error, "pipe2");
    }
    free_.reserve(kSlots);
    for (unsigned slot = kSlots; slot-- > 0;)
        free_.push_back(static_cast<std::uint16_t>(slot));
}

Ring::~Ring()
{
    io_uring_queue_exit(&ring_);
    ::close(pipe_[0]);
    ::close(pipe_[1]);
}

int Ring::pin(const void *start, std::size_t len)
{
    int slot;
    {
        const std::lock_guard lock(mutex_);
        if (free_.empty())
            return -ENOSPC;
        slot = free_.back();
        free_.pop_back();
    }
    iovec range{const_cast<void *>(start), len};
    __u64 tag = 0;
    const int updated = io_uring_register_buffers_update_tag(&ring_, static_cast<unsigned>(slot), &range, &tag, 1);
    if (updated == 1)
        return slot;
    const std::lock_guard lock(mutex_);
    free_.push_back(static_cast<std::uint16_t>(slot));
    return updated < 0 ? updated : -EIO;
}

void Ring::unpin(int slot)
{
    iovec nothing{nullptr, 0};
    __u64 tag = 0;
    const int updated = io_uring_register_buffers_update_tag(&ring_, static_cast<unsigned>(slot), &nothing, &tag, 1);
    if (updated != 1) {
        // The slot stays out of use: its pages may still be pinned.
        std::fprintf(stderr, "pin: can't unpin slot %d: %s\n", slot, std::strerror(-updated));
        return;
    }
    const std::lock_guard lock(mutex_);
    free_.push_back(static_cast<std::uint16_t>(slot));
}

int Ring::submit()
{
    int submitted;
    do
        submitted = io_uring_submit_and_wait(&ring_, 1);
    while (submitted == -EINTR);
    if (submitted < 0)
        return submitted;
    io_uring_cqe *done = nullptr;
    int waited;
    do
        waited = io_uring_wait_cqe(&ring_, &done);
    while (waited == -EINTR);
    if (waited < 0)
        return waited;
    const int result = done->res;
    io_uring_cqe_seen(&ring_, done);
    return result;
}

ssize_t Ring::drained(ssize_t error)
{
    char rest[4096];
    while (::read(pipe_[0], rest, sizeof(rest)) > 0)
        ;
    return error;
}

ssize_t Ring::copy_out(int slot, const void *address, void *buffer, std::size_t len)
{
    const std::lock_guard lock(mutex_);
    std::size_t copied = 0;
    while (copied < len) {
        const auto chunk = static_cast<unsigned>(std::min(len - copied, kChunk));
        io_uring_sqe *entry = io_uring_get_sqe(&ring_);
        io_uring_prep_write_fixed(entry, pipe_[1], static_cast<const char *>(address) + copied, chunk, 0, slot);
        const int moved = submit();
        if (moved <= 0)
            return drained(moved < 0 ? moved : -EIO);
        for (int taken = 0; taken < moved;) {
            const ssize_t got = ::read(pipe_[0], static_cast<char *>(buffer) + copied, static_cast<std::size_t>(moved - taken));
            if (got <= 0)
                return drained(got < 0 ? -errno : -EIO);
            taken += static_cast<int>(got);
            copied += static_cast<std::size_t>(got);
        }
    }
    return static_cast<ssize_t>(copied);
}

ssize_t Ring::copy_in(int slot, const void *address, const void *buffer, std::size_t len)
{
    const std::lock_guard lock(mutex_);
    std::size_t copied = 0;
    while (copied < len) {
        const ssize_t put = ::write(pipe_[1], static_cast<const char *>(buffer) + copied, std::min(len - copied, kChunk));
        if (put <= 0)
            return drained(put < 0 ? -errno : -EIO);
        for (ssize_t taken = 0; taken < put;) {
            io_uring_sqe *entry = io_uring_get_sqe(&ring_);
            // No const_cast would do: READ_FIXED writes into the pinned pages, which is the purpose.
            io_uring_prep_read_fixed(entry, pipe_[0], const_cast<char *>(static_cast<const char *>(address)) + copied,
                                     static_cast<unsigned>(put - taken), 0, slot);
            const int moved = submit();
            if (moved <= 0)
                return drained(moved < 0 ? moved : -EIO);
            taken += moved;
            copied += static_cast<std::size_t>(moved);
        }
    }
    return static_cast<ssize_t>(copied);
}

int Rings::pin(const void *start, std::size_t len, Slot &slot)
{
    const auto take = [&](Ring &ring) {
        slot = {&ring, ring.pin(start, len)};
        return slot.number >= 0 ? 0 : slot.number;
    };
    std::size_t known;
    {
        const std::lock_guard lock(mutex_);
        known = rings_.size();
    }
    for (std::size_t at = known; at-- > 0;) {
        Ring *ring;
        {
            const std::lock_guard lock(mutex_);
            ring = rings_[at].get();
        }
        const int error = take(*ring);
        if (error != -ENOSPC)
            return error;
    }
    auto fresh = std::make_unique<Ring>();
    Ring &ring = *fresh;
    {
        const std::lock_guard lock(mutex_);
        rings_.push_back(std::move(fresh));
    }
    return take(ring);
}

int probe(std::string &why)
{
    const long page = sysconf(_SC_PAGESIZE);
    void *memory = mmap(nullptr, static_cast<std::size_t>(page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        why = "no memory for one page";
        return -ENOMEM;
    }
    int error = 0;
    try {
        Ring ring;
        const int slot = ring.pin(memory, static_cast<std::size_t>(page));
        if (slot < 0)
            error = slot;
        else
            ring.unpin(slot);
    } catch (const std::system_error &failed) {
        error = -failed.code().value();
    } catch (const std::bad_alloc &) {
        error = -ENOMEM;
    }
    munmap(memory, static_cast<std::size_t>(page));
    if (error == 0)
        return 0;
    why = "pages can't be pinned with io_uring: " + std::string(std::strerror(-error)) + "; ";
    if (io_uring_disabled() != 0)
        why += "set the sysctl kernel.io_uring_disabled to 0";
    else if (error == -EPERM || error == -ENOSYS)
        why += "a seccomp filter (container) forbids io_uring, or the kernel has none";
    else if (error == -ENOMEM)
        why += "raise RLIMIT_MEMLOCK (ulimit -l)";
    else if (error == -EINVAL)
        why += "the kernel is older than 5.19";
    else
        why += "see io_uring_setup(2)";
    return error;
}

} // namespace pin
