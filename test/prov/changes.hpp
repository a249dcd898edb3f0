// SPDX-License-Identifier: BSD-2-Clause
// What a program can do to its mappings, with other pages at the same address afterwards. Registers nothing.
#pragma once

#include "prov/far_away.hpp"
#include "support/memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <vector>

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

namespace regcache::test {

inline bool map_at(char *start, std::size_t bytes)
{
    void *const got =
        mmap(start, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    return got == start;
}

inline bool replace_by_unmapping(char *start, std::size_t bytes)
{
    return munmap(start, bytes) == 0 && map_at(start, bytes);
}

// At once, so that no other thread can be given the address in between.
inline bool replace_in_place(char *start, std::size_t bytes)
{
    return mmap(start, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == start;
}

struct Change {
    const char *name;
    bool (*make)(char *start, std::size_t bytes); // false when this kernel hasn't got it
};

// Each leaves [start, start + bytes) mapped, readable and writable, without the pages that were there.
inline std::vector<Change> private_changes()
{
    return {
        {"munmap", replace_by_unmapping},
        {"the system call munmap itself",
         [](char *start, std::size_t bytes) { return syscall(SYS_munmap, start, bytes) == 0 && map_at(start, bytes); }},
        {"mmap(MAP_FIXED)", replace_in_place},
        {"mmap(MAP_FIXED) of a shared mapping",
         [](char *start, std::size_t bytes) {
             return mmap(start, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == start;
         }},
        {"mremap to another place",
         [](char *start, std::size_t bytes) {
             void *const place = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
             if (mremap(start, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place) != place)
                 return false;
             munmap(place, bytes);
             return map_at(start, bytes);
         }},
        {"mremap of other pages to here",
         [](char *start, std::size_t bytes) {
             void *const other = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
             return mremap(other, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, start) == start;
         }},
        {"mremap(MREMAP_DONTUNMAP)",
         [](char *start, std::size_t bytes) {
             void *const moved = mremap(start, bytes, bytes, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, nullptr);
             return moved != MAP_FAILED && munmap(moved, bytes) == 0;
         }},
        {"madvise(MADV_DONTNEED)",
         [](char *start, std::size_t bytes) { return madvise(start, bytes, MADV_DONTNEED) == 0; }},
        {"the system call madvise itself",
         [](char *start, std::size_t bytes) { return syscall(SYS_madvise, start, bytes, MADV_DONTNEED) == 0; }},
        {"munmap and two mappings",
         [](char *start, std::size_t bytes) {
             if (munmap(start, bytes) != 0 || !map_at(start, page_size()))
                 return false;
             return bytes == page_size() || map_at(start + page_size(), bytes - page_size());
         }},
    };
}

// These leave the very pages where they were.
inline std::vector<Change> changes_that_keep_pages()
{
    return {
        {"mprotect",
         [](char *start, std::size_t bytes) {
             return mprotect(start, bytes, PROT_NONE) == 0 && mprotect(start, bytes, PROT_READ | PROT_WRITE) == 0;
         }},
        {"madvise(MADV_NOHUGEPAGE)",
         [](char *start, std::size_t bytes) { return madvise(start, bytes, MADV_NOHUGEPAGE) == 0 || errno == EINVAL; }},
        {"mlock",
         [](char *start, std::size_t bytes) { return mlock(start, bytes) == 0 && munlock(start, bytes) == 0; }},
        // Last: for a while after it was told, what is at the address isn't cached.
        {"madvise(MADV_FREE)", [](char *start, std::size_t bytes) { return madvise(start, bytes, MADV_FREE) == 0; }},
    };
}

struct SharedChange {
    const char *name;
    bool (*make)(const Mapping &memory); // false when that kind of memory hasn't got it
};

// Each leaves the mapping as it was, without the pages that were there.
inline std::vector<SharedChange> shared_changes()
{
    return {
        {"munmap of one half",
         [](const Mapping &memory) {
             const std::size_t half = memory.size() / 2;
             char *const start = memory.data();
             return memory.kind() != Kind::SysV && replace_by_unmapping(start, half);
         }},
        {"ftruncate",
         [](const Mapping &memory) {
             const auto bytes = static_cast<off_t>(memory.size());
             return memory.descriptor() >= 0 && ftruncate(memory.descriptor(), 0) == 0 &&
                    ftruncate(memory.descriptor(), bytes) == 0;
         }},
        {"fallocate(FALLOC_FL_PUNCH_HOLE)",
         [](const Mapping &memory) {
             return memory.descriptor() >= 0 && fallocate(memory.descriptor(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                                                          static_cast<off_t>(memory.size())) == 0;
         }},
        {"madvise(MADV_REMOVE)",
         [](const Mapping &memory) { return madvise(memory.data(), memory.size(), MADV_REMOVE) == 0; }},
        {"madvise(MADV_DONTNEED)",
         [](const Mapping &memory) { return madvise(memory.data(), memory.size(), MADV_DONTNEED) == 0; }},
        {"shmdt and shmat",
         [](const Mapping &memory) {
             if (memory.kind() != Kind::SysV || shmdt(memory.data()) != 0)
                 return false;
             const int segment = shmget(IPC_PRIVATE, memory.size(), IPC_CREAT | 0600);
             const bool is_there = segment >= 0 && shmat(segment, memory.data(), 0) == memory.data();
             shmctl(segment, IPC_RMID, nullptr);
             return is_there;
         }},
    };
}

} // namespace regcache::test
