// SPDX-License-Identifier: BSD-2-Clause
// Asks /proc/self/maps: by its PROCMAP_QUERY call, or by reading its text line by line.
#include "vm/mapping.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace regcache {
namespace {

// include/uapi/linux/fs.h since 6.11; older headers lack it.
struct ProcmapQuery {
    std::uint64_t size, query_flags, query_addr;
    std::uint64_t vma_start, vma_end, vma_flags, vma_page_size, vma_offset, inode;
    std::uint32_t dev_major, dev_minor, vma_name_size, build_id_size;
    std::uint64_t vma_name_addr, build_id_addr;
};
constexpr unsigned long kProcmapQuery = _IOWR('f', 17, ProcmapQuery);
constexpr std::uint64_t kShared = 0x08;

// Private huge pages without a file of the user's have a file of the kernel's behind them, which nobody can open.
constexpr char kAnonymousHuge[] = "/anon_hugepage";

bool is_users_file(std::uint64_t inode, const char *name) noexcept
{
    return inode != 0 && std::strncmp(name, kAnonymousHuge, sizeof kAnonymousHuge - 1) != 0;
}

} // namespace

MappingReader::MappingReader() noexcept : maps_(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC))
{
    Mapping mapping;
    can_query_ = works() && query(reinterpret_cast<std::uintptr_t>(&kAnonymousHuge), mapping);
}

bool MappingReader::find(std::uintptr_t address, Mapping &mapping) const noexcept
{
    return can_query_ ? query(address, mapping) : read_text(address, mapping);
}

bool MappingReader::query(std::uintptr_t address, Mapping &mapping) const noexcept
{
    char name[256] = "";
    ProcmapQuery question{};
    question.size = sizeof question;
    question.query_addr = address;
    question.vma_name_size = sizeof name;
    question.vma_name_addr = reinterpret_cast<std::uintptr_t>(name);
    int answer = ioctl(maps_.number(), kProcmapQuery, &question);
    if (answer != 0 && errno == ENAMETOOLONG) {
        // No name of the kernel's own is that long.
        question.vma_name_size = 0;
        question.vma_name_addr = 0;
        answer = ioctl(maps_.number(), kProcmapQuery, &question);
    }
    if (answer != 0)
        return false;
    mapping.range = {question.vma_start, question.vma_end};
    mapping.is_shared = (question.vma_flags & kShared) != 0;
    mapping.is_file = is_users_file(question.inode, name);
    mapping.page_bytes = question.vma_page_size;
    return true;
}

bool MappingReader::read_text(std::uintptr_t address, Mapping &mapping) const noexcept
{
    // A descriptor of its own: the offset of a shared one would be everybody's.
    const Fd maps(works() ? ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC) : -1);
    if (!maps)
        return false;
    char text[8192];
    std::size_t held = 0;
    for (;;) {
        const ssize_t got = ::read(maps.number(), text + held, sizeof text - 1 - held);
        if (got <= 0)
            return false;
        held += static_cast<std::size_t>(got);
        text[held] = '\0';
        char *line = text;
        while (char *end = std::strchr(line, '\n')) {
            *end = '\0';
            std::uintptr_t from = 0, to = 0;
            std::uint64_t inode = 0;
            char rights[5] = "";
            int name_at = 0;
            if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*x %*x:%*x %" SCNu64 " %n", &from, &to, rights, &inode,
                            &name_at) >= 4 &&
                from <= address && address < to) {
                mapping.range = {from, to};
                mapping.is_shared = rights[3] == 's';
                mapping.is_file = is_users_file(inode, line + name_at);
                mapping.page_bytes = 0;
                return true;
            }
            line = end + 1;
        }
        held -= static_cast<std::size_t>(line - text);
        if (held == sizeof text - 1)
            held = 0; // a line longer than any the kernel writes
        std::memmove(text, line, held);
    }
}

} // namespace regcache
