// SPDX-License-Identifier: BSD-2-Clause
// Memory of each kind (memory.hpp).
#include "support/memory.hpp"

#include <fcntl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <system_error>
#include <utility>

namespace regcache::test {

namespace {

constexpr std::size_t kHuge = std::size_t{2} << 20;

[[noreturn]] void fail(const char *what) { throw std::system_error(errno, std::generic_category(), what); }

std::size_t rounded(std::size_t len, std::size_t unit) { return (len + unit - 1) / unit * unit; }

std::size_t huge_page_size()
{
    std::ifstream info("/proc/meminfo");
    for (std::string name, rest; info >> name; std::getline(info, rest))
        if (name == "Hugepagesize:") {
            std::size_t kib = 0;
            info >> kib;
            return kib * 1024;
        }
    return kHuge;
}

int open_unlinked_file()
{
    const char *folder = std::getenv("SCRATCH_DIR");
    const int descriptor = open(folder ? folder : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (descriptor >= 0 || errno != EOPNOTSUPP)
        return descriptor;
    std::string path = std::string(folder ? folder : "/tmp") + "/memory.XXXXXX";
    const int named = mkostemp(path.data(), O_CLOEXEC);
    if (named >= 0)
        unlink(path.c_str());
    return named;
}

bool has_thp()
{
    std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
    std::string text;
    return std::getline(file, text) && text.find("[never]") == std::string::npos;
}

} // namespace

std::vector<Kind> all_kinds()
{
    return {Kind::Private,     Kind::Shared,     Kind::Memfd,   Kind::SysV,
            Kind::FilePrivate, Kind::FileShared, Kind::HugeTlb, Kind::Thp};
}

std::vector<Kind> private_kinds() { return {Kind::Private, Kind::FilePrivate, Kind::HugeTlb, Kind::Thp}; }

const char *name_of(Kind kind) noexcept
{
    switch (kind) {
    case Kind::Private:
        return "private";
    case Kind::Shared:
        return "shared";
    case Kind::Memfd:
        return "memfd";
    case Kind::SysV:
        return "SysV";
    case Kind::FilePrivate:
        return "private file";
    case Kind::FileShared:
        return "shared file";
    case Kind::HugeTlb:
        return "hugetlb";
    case Kind::Thp:
        return "transparent huge page";
    }
    return "?";
}

Mapping::Mapping(Kind kind, std::size_t len) : Mapping(kind, len, nullptr) {}

Mapping::Mapping(Kind kind, std::size_t len, void *where)
    : kind_(kind), len_(rounded(len, kind == Kind::HugeTlb ? huge_page_size() : page_size()))
{
    try {
        map(where);
    } catch (...) {
        unmap();
        throw;
    }
    if (where && start_ != where) {
        unmap();
        throw std::system_error(EEXIST, std::generic_category(), "the address is taken");
    }
}

Mapping::Mapping(Mapping &&other) noexcept { *this = std::move(other); }

Mapping &Mapping::operator=(Mapping &&other) noexcept
{
    std::swap(kind_, other.kind_);
    std::swap(start_, other.start_);
    std::swap(len_, other.len_);
    std::swap(descriptor_, other.descriptor_);
    return *this;
}

void Mapping::map_descriptor(void *where, int flags)
{
    void *mapped = mmap(where, len_, PROT_READ | PROT_WRITE, flags | (where ? MAP_FIXED_NOREPLACE : 0), descriptor_, 0);
    if (mapped == MAP_FAILED)
        fail("mmap");
    start_ = mapped;
}

void Mapping::map(void *where)
{
    switch (kind_) {
    case Kind::Private:
        return map_descriptor(where, MAP_PRIVATE | MAP_ANONYMOUS);
    case Kind::Shared:
        return map_descriptor(where, MAP_SHARED | MAP_ANONYMOUS);
    case Kind::Memfd:
        descriptor_ = memfd_create("regcache-test", MFD_CLOEXEC);
        if (descriptor_ < 0 || ftruncate(descriptor_, static_cast<off_t>(len_)) != 0)
            fail("memfd");
        return map_descriptor(where, MAP_SHARED);
    case Kind::FilePrivate:
    case Kind::FileShared:
        descriptor_ = open_unlinked_file();
        if (descriptor_ < 0 || ftruncate(descriptor_, static_cast<off_t>(len_)) != 0)
            fail("a file in SCRATCH_DIR");
        return map_descriptor(where, kind_ == Kind::FilePrivate ? MAP_PRIVATE : MAP_SHARED);
    case Kind::SysV: {
        const int segment = shmget(IPC_PRIVATE, len_, IPC_CREAT | 0600);
        if (segment < 0)
            fail("shmget");
        void *attached = shmat(segment, where, 0);
        const int error = errno;
        shmctl(segment, IPC_RMID, nullptr); // goes when the last process detaches it
        errno = error;
        if (attached == reinterpret_cast<void *>(-1))
            fail("shmat");
        start_ = attached;
        return;
    }
    case Kind::HugeTlb: {
        const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB;
        void *mapped = mmap(where, len_, PROT_READ | PROT_WRITE, flags | (where ? MAP_FIXED_NOREPLACE : 0), -1, 0);
        if (mapped == MAP_FAILED)
            throw Unavailable("no huge pages are reserved (sysctl vm.nr_hugepages)");
        start_ = mapped;
        return;
    }
    case Kind::Thp: {
        if (!has_thp())
            throw Unavailable("transparent huge pages are off (/sys/kernel/mm/transparent_hugepage/enabled)");
        if (where) {
            map_descriptor(where, MAP_PRIVATE | MAP_ANONYMOUS);
        } else {
            // More than needed, to cut an aligned part out of it.
            void *mapped = mmap(nullptr, len_ + kHuge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (mapped == MAP_FAILED)
                fail("mmap");
            auto *begin = static_cast<char *>(mapped);
            auto *aligned = reinterpret_cast<char *>(rounded(reinterpret_cast<std::size_t>(begin), kHuge));
            munmap(begin, len_ + kHuge);
            map_descriptor(aligned, MAP_PRIVATE | MAP_ANONYMOUS);
        }
        madvise(start_, len_, MADV_HUGEPAGE);
        return;
    }
    }
}

void Mapping::fill(char byte) const { std::memset(start_, byte, len_); }

void Mapping::protect(int protection) const
{
    if (mprotect(start_, len_, protection) != 0)
        fail("mprotect");
}

void Mapping::unmap() noexcept
{
    if (start_) {
        if (kind_ == Kind::SysV)
            shmdt(start_);
        else
            munmap(start_, len_);
    }
    forget();
}

void Mapping::forget() noexcept
{
    start_ = nullptr;
    if (descriptor_ >= 0)
        close(std::exchange(descriptor_, -1));
}

} // namespace regcache::test
