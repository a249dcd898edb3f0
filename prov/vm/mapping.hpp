// SPDX-License-Identifier: BSD-2-Clause
// What is mapped at an address of this process: asked of /proc/self/maps. Doesn't judge what may be cached.
#pragma once

#include "sys/fd.hpp"
#include "sys/range.hpp"

#include <cstddef>

namespace regcache {

struct Mapping {
    Range range;
    bool is_shared = false;
    bool is_file = false;          // has a file behind it, other than the kernel's own for private huge pages
    std::size_t page_bytes = 0;    // 0: not known
};

// Any thread. Where the kernel answers for one address (6.11), a question costs about a microsecond; elsewhere the text of
// the whole file is read.
class MappingReader {
public:
    // Without /proc nothing is known and find() always fails.
    MappingReader() noexcept;

    bool works() const noexcept { return static_cast<bool>(maps_); }
    // The mapping that contains `address`.
    bool find(std::uintptr_t address, Mapping &mapping) const noexcept;
    // In a forked child: the descriptor shows the parent's address space.
    void close() noexcept { maps_.close(); }

    // For tests: reads the text even where the kernel answers questions.
    void read_text_only() noexcept { can_query_ = false; }

private:
    bool query(std::uintptr_t address, Mapping &mapping) const noexcept;
    bool read_text(std::uintptr_t address, Mapping &mapping) const noexcept;

    Fd maps_;
    bool can_query_ = false;
};

} // namespace regcache
