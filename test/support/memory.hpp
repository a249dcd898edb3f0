// SPDX-License-Identifier: BSD-2-Clause
// Memory of each kind that an application may register, and the changes it may do to it. Doesn't register anything.
#pragma once

#include "sys/range.hpp"

#include <alloca.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

namespace regcache::test {

enum class Kind {
    Private,      // anonymous, private
    Shared,       // anonymous, shared
    Memfd,        // memfd_create, shared
    SysV,         // shmget and shmat
    FilePrivate,  // an unlinked file in SCRATCH_DIR, private
    FileShared,   // the same, shared
    HugeTlb,      // MAP_HUGETLB: Unavailable unless huge pages are reserved
    Thp,          // anonymous, aligned for a transparent huge page and advised to be one
};

// All of them, and those that userfaultfd sees every change of.
std::vector<Kind> all_kinds();
std::vector<Kind> private_kinds();
const char *name_of(Kind kind) noexcept;

// This machine has none of that kind; the reason is in what().
class Unavailable : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

using regcache::page_size;

// A mapping of `len` bytes (rounded up to pages, huge ones for HugeTlb), readable and writable, pages not yet there. Owns it.
class Mapping {
public:
    Mapping() noexcept = default;
    // Throws Unavailable, or system_error.
    Mapping(Kind kind, std::size_t len);
    // The same kind at a given address, where nothing may be mapped: what an allocator that recycles an address does.
    Mapping(Kind kind, std::size_t len, void *where);
    Mapping(Mapping &&other) noexcept;
    Mapping &operator=(Mapping &&other) noexcept;
    ~Mapping() { unmap(); }

    char *data() const noexcept { return static_cast<char *>(start_); }
    std::size_t size() const noexcept { return len_; }
    Kind kind() const noexcept { return kind_; }
    // Of Memfd and files; -1 for the others.
    int descriptor() const noexcept { return descriptor_; }

    void fill(char byte) const;
    void protect(int protection) const; // throws system_error
    void unmap() noexcept;              // nothing happens the second time
    // Somebody else unmapped it: don't do it again.
    void forget() noexcept;

private:
    void map(void *where);
    void map_descriptor(void *where, int flags);

    Kind kind_ = Kind::Private;
    void *start_ = nullptr;
    std::size_t len_ = 0;
    int descriptor_ = -1;
};

// Calls f(char *, len) with memory on this thread's stack.
template <class F>
[[gnu::noinline]] auto on_stack(std::size_t len, F f)
{
    char *memory = static_cast<char *>(alloca(len));
    return f(memory, len);
}

} // namespace regcache::test
