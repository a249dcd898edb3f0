// SPDX-License-Identifier: BSD-2-Clause
// Pages pinned by the kernel, and copies from and into them, whatever is mapped at their address today. Doesn't know what a
// registration is.
#pragma once

#include <liburing.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace pin {

// One io_uring with a table of slots. A slot pins the pages of one range for reading and writing (IORING_REGISTER_BUFFERS);
// WRITE_FIXED and READ_FIXED through a slot reach the pages that it pins. Owns its descriptors; any thread may call.
class Ring {
public:
    static constexpr unsigned kSlots = 16384; // the kernel's limit for one table
    // The most the kernel takes in one slot.
    static constexpr std::size_t kMaxLen = std::size_t{1} << 30;

    Ring(); // throws system_error
    ~Ring();
    Ring(const Ring &) = delete;
    Ring &operator=(const Ring &) = delete;

    // The slot, or a negative errno: -ENOSPC when all slots are taken, -EFAULT for memory that isn't mapped or can't be written,
    // -ENOMEM when RLIMIT_MEMLOCK is reached, -EOPNOTSUPP for kinds of files that can't be pinned.
    int pin(const void *start, std::size_t len);
    void unpin(int slot);

    // Bytes copied (always len), or a negative errno. The range must lie in what the slot pins.
    ssize_t copy_out(int slot, const void *address, void *buffer, std::size_t len);
    ssize_t copy_in(int slot, const void *address, const void *buffer, std::size_t len);

private:
    int submit();
    ssize_t drained(ssize_t error); // empties the pipe after a failed copy

    std::mutex mutex_;
    io_uring ring_{};
    int pipe_[2] = {-1, -1}; // between a slot and a plain buffer: io_uring moves bytes to files only
    std::vector<std::uint16_t> free_;
};

// As many rings as the registrations of one domain need.
class Rings {
public:
    struct Slot {
        Ring *ring;
        int number;
    };
    // 0 or a negative errno.
    int pin(const void *start, std::size_t len, Slot &slot);

private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<Ring>> rings_;
};

// Whether pages can be pinned here: 0, or a negative errno and one line with the remedy.
int probe(std::string &why);

} // namespace pin
