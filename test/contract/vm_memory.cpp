// SPDX-License-Identifier: BSD-2-Clause
// Memory of every kind (vm_memory.hpp).
#include "contract/vm_memory.hpp"

#include "support/memory.hpp"

#include <sys/ipc.h>
#include <sys/shm.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

namespace regcache::test {
namespace {

// One page more than is used, to begin at a page.
constexpr std::size_t kArrayBytes = (kAreaUnits + 1) * 4096;
char in_bss[kArrayBytes];
// Each of its pages is another one.
struct Numbered {
    constexpr Numbered()
    {
        for (std::size_t i = 0; i < kArrayBytes; ++i)
            bytes[i] = static_cast<char>('0' + i / 4096);
    }
    char bytes[kArrayBytes] = {};
};
constinit Numbered in_data;
extern const Numbered in_rodata;
constexpr Numbered in_rodata;

Kind mapping_of(AreaKind kind)
{
    switch (kind) {
    case AreaKind::Thp:
        return Kind::Thp;
    case AreaKind::HugeTlb:
        return Kind::HugeTlb;
    case AreaKind::FilePrivate:
        return Kind::FilePrivate;
    case AreaKind::SharedAnonymous:
        return Kind::Shared;
    case AreaKind::Memfd:
        return Kind::Memfd;
    case AreaKind::FileShared:
        return Kind::FileShared;
    default:
        return Kind::Private;
    }
}

char *rounded(void *begin, std::size_t unit)
{
    return reinterpret_cast<char *>((reinterpret_cast<std::uintptr_t>(begin) + unit - 1) / unit * unit);
}

void map(Area &area)
{
    constexpr std::size_t kTwoMiB = std::size_t{2} << 20;
    std::size_t bytes = kAreaUnits * page_size();
    if (area.kind == AreaKind::Thp)
        bytes = 2 * kTwoMiB;
    if (area.kind == AreaKind::HugeTlb) {
        area.unit = Mapping(Kind::HugeTlb, 1).size();
        bytes = 4 * area.unit;
    }
    // Left behind for good: operations may have taken it apart.
    auto &mapping = *new Mapping(mapping_of(area.kind), bytes);
    area.start = mapping.data();
    area.bytes = mapping.size();
    area.descriptor = mapping.descriptor();
}

std::string attach(Area &area)
{
    area.segment = shmget(IPC_PRIVATE, area.bytes, IPC_CREAT | 0600);
    void *const attached = area.segment < 0 ? nullptr : shmat(area.segment, nullptr, 0);
    if (area.segment >= 0)
        shmctl(area.segment, IPC_RMID, nullptr); // goes with the last process that has it attached
    if (area.segment < 0 || attached == reinterpret_cast<void *>(-1))
        return std::string("no SysV segment: ") + std::strerror(errno);
    area.start = static_cast<char *>(attached);
    return "";
}

} // namespace

const char *name_of(AreaKind kind) noexcept
{
    switch (kind) {
    case AreaKind::Private:
        return "anonymous";
    case AreaKind::Heap:
        return "heap (brk)";
    case AreaKind::Malloc:
        return "malloc (mmap)";
    case AreaKind::Thp:
        return "THP";
    case AreaKind::Stack:
        return "stack";
    case AreaKind::Bss:
        return ".bss";
    case AreaKind::HugeTlb:
        return "hugetlb";
    case AreaKind::Data:
        return ".data";
    case AreaKind::Rodata:
        return ".rodata";
    case AreaKind::FilePrivate:
        return "file, private";
    case AreaKind::SharedAnonymous:
        return "anonymous, shared";
    case AreaKind::Memfd:
        return "memfd";
    case AreaKind::SysV:
        return "SysV";
    case AreaKind::FileShared:
        return "file, shared";
    }
    return "?";
}

std::string make_area(AreaKind kind, Area &area)
{
    area.kind = kind;
    area.unit = page_size();
    area.bytes = kAreaUnits * area.unit;
    const auto take_array = [&](const char *array) {
        area.start = rounded(const_cast<char *>(array), area.unit);
        return area.unit == 4096 ? "" : "its pages are larger than the test's arrays are made for";
    };
    try {
        switch (kind) {
        case AreaKind::Bss:
            return take_array(in_bss);
        case AreaKind::Data:
            return take_array(in_data.bytes);
        case AreaKind::Rodata:
            area.is_writable = false;
            return take_array(in_rodata.bytes);
        case AreaKind::Heap: {
            void *const begin = sbrk(static_cast<intptr_t>(area.bytes + area.unit));
            if (begin == reinterpret_cast<void *>(-1))
                return std::string("the heap can't grow: ") + std::strerror(errno);
            area.start = rounded(begin, area.unit);
            return "";
        }
        case AreaKind::Malloc:
            // Beyond the threshold from which malloc maps, on a page of its own.
            area.bytes = std::size_t{1} << 20;
            area.block = std::malloc(area.bytes + area.unit);
            if (!area.block)
                return "no memory";
            area.start = rounded(area.block, area.unit);
            return "";
        case AreaKind::SysV:
            return attach(area);
        default:
            map(area);
            return "";
        }
    } catch (const std::exception &error) {
        return error.what();
    }
}

} // namespace regcache::test
