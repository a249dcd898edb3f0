// SPDX-License-Identifier: BSD-2-Clause
// Pages of read-only memory, held by pipes: io_uring pins for writing only. Not for memory that can be written.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <vector>

namespace pin {

// vmsplice puts references to the pages themselves into a pipe, without a copy. They stay what they were when the address
// range is unmapped or mapped anew, so a read through them shows stale bytes as a card would. Owns its descriptors. Immutable
// once held, so any thread may read.
class HeldPages {
public:
    static constexpr std::size_t kMaxLen = std::size_t{64} << 20; // two descriptors for each MiB

    HeldPages() noexcept = default;
    HeldPages(HeldPages &&) noexcept = default;
    HeldPages(const HeldPages &) = delete;
    ~HeldPages();

    // 0, or a negative errno: -EFAULT for memory that can't be read, -ENOMEM above kMaxLen, -EMFILE.
    int hold(const void *start, std::size_t len);
    // Bytes copied (always len), or a negative errno. The range must lie in what is held.
    ssize_t copy_out(const void *address, void *buffer, std::size_t len) const;

private:
    struct Part {
        int pipe[2];
        const char *start;
        std::size_t len;
    };
    static ssize_t copy_part(const Part &part, std::size_t offset, char *buffer, std::size_t len);

    std::vector<Part> parts_;
};

} // namespace pin
