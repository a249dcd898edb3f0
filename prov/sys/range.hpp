// SPDX-License-Identifier: BSD-2-Clause
// Which addresses are meant: half-open ranges and their rounding to pages. Knows nothing of what is mapped there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace regcache {

struct Range {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0; // one past the last byte

    static Range of(const void *address, std::size_t bytes) noexcept
    {
        const auto begin = reinterpret_cast<std::uintptr_t>(address);
        return {begin, begin + bytes};
    }
    static constexpr Range everything() noexcept { return {0, UINTPTR_MAX}; }

    constexpr std::size_t size() const noexcept { return end - begin; }
    constexpr bool is_empty() const noexcept { return end <= begin; }
    constexpr bool contains(const Range &other) const noexcept { return begin <= other.begin && other.end <= end; }
    constexpr bool overlaps(const Range &other) const noexcept { return begin < other.end && other.begin < end; }
    void *address() const noexcept { return reinterpret_cast<void *>(begin); }

    friend constexpr bool operator==(const Range &, const Range &) = default;
};

// The common part of two ranges; empty when there is none.
constexpr Range intersection(const Range &a, const Range &b) noexcept
{
    const Range both{a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
    return both.is_empty() ? Range{} : both;
}

// The smallest range of whole pages that contains `range`. `page` is a power of two. A range that ends within the last
// page of the address space, or wraps around it, gives an empty one.
constexpr Range whole_pages(const Range &range, std::size_t page) noexcept
{
    const std::uintptr_t mask = page - 1;
    if (range.end < range.begin || range.end > UINTPTR_MAX - mask)
        return {};
    return {range.begin & ~mask, (range.end + mask) & ~mask};
}

// Bytes in a page of ordinary memory.
std::size_t page_size() noexcept;

} // namespace regcache
