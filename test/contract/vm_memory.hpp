// SPDX-License-Identifier: BSD-2-Clause
// Memory of every kind that a program can have, for operations on it. Nothing is given back: it ends with its process.
#pragma once

#include "sys/range.hpp"

#include <alloca.h>

#include <array>
#include <cstddef>
#include <string>

namespace regcache::test {

enum class AreaKind : unsigned {
    Private,
    Heap,
    Malloc,
    Thp,
    Stack,
    Bss,
    HugeTlb,
    Data,
    Rodata,
    FilePrivate,
    SharedAnonymous,
    Memfd,
    SysV,
    FileShared,
};
inline constexpr std::array kAreaKinds{
    AreaKind::Private, AreaKind::Heap, AreaKind::Malloc,      AreaKind::Thp,             AreaKind::Stack,
    AreaKind::Bss,     AreaKind::HugeTlb, AreaKind::Data,     AreaKind::Rodata,          AreaKind::FilePrivate,
    AreaKind::SharedAnonymous, AreaKind::Memfd, AreaKind::SysV, AreaKind::FileShared};

const char *name_of(AreaKind kind) noexcept;

// A set of kinds.
using Kinds = unsigned;
constexpr Kinds bit(AreaKind kind) { return 1u << static_cast<unsigned>(kind); }
constexpr Kinds operator|(AreaKind a, AreaKind b) { return bit(a) | bit(b); }
constexpr Kinds operator|(Kinds a, AreaKind b) { return a | bit(b); }
inline constexpr Kinds kAnyKind = (1u << kAreaKinds.size()) - 1;
// Private, and no file behind it.
inline constexpr Kinds kAnonymous = AreaKind::Private | AreaKind::Heap | AreaKind::Malloc | AreaKind::Thp |
                                    AreaKind::Stack | AreaKind::Bss | AreaKind::HugeTlb;
inline constexpr Kinds kShared = AreaKind::SharedAnonymous | AreaKind::Memfd | AreaKind::SysV | AreaKind::FileShared;
inline constexpr Kinds kWithDescriptor = AreaKind::FilePrivate | AreaKind::Memfd | AreaKind::FileShared;

struct Area {
    AreaKind kind = AreaKind::Private;
    char *start = nullptr;
    std::size_t bytes = 0;
    std::size_t unit = 0; // the least that can be changed
    bool is_writable = true;
    int descriptor = -1;    // of the file, where there is one
    int segment = -1;       // SysV
    void *block = nullptr;  // what malloc gave

    Range whole() const noexcept { return Range::of(start, bytes); }
    Range units(std::size_t first, std::size_t count) const noexcept { return Range::of(start + first * unit, count * unit); }
    std::size_t count() const noexcept { return bytes / unit; }
};

// Why there is none of that kind here; "" when there is. Memory on the stack comes from with_area() alone.
std::string make_area(AreaKind kind, Area &area);

inline constexpr std::size_t kAreaUnits = 8;

// Calls f(area) as long as the memory is there; returns why there is none, or "".
template <class F>
std::string with_area(AreaKind kind, F f)
{
    Area area;
    if (kind == AreaKind::Stack) {
        const std::size_t page = page_size();
        auto begin = reinterpret_cast<std::uintptr_t>(alloca((kAreaUnits + 2) * page));
        area.kind = kind;
        area.start = reinterpret_cast<char *>((begin + page - 1) / page * page);
        area.bytes = kAreaUnits * page;
        area.unit = page;
    } else if (std::string why = make_area(kind, area); !why.empty()) {
        return why;
    }
    f(area);
    return "";
}

} // namespace regcache::test
