// SPDX-License-Identifier: BSD-2-Clause
// The system calls behind the table of operations (vm_system.hpp).
#include "contract/vm_system.hpp"

#include "sys/fd.hpp"

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

namespace regcache::test {
namespace {

int result(bool is_done)
{
    return is_done ? 0 : errno;
}

constexpr int kReadWrite = PROT_READ | PROT_WRITE;

// A place for `bytes` where nothing is that anybody needs.
void *place_for(std::size_t bytes)
{
    return mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

int wait_for(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD;
}

off_t offset_of(const Area &area, Range part)
{
    return static_cast<off_t>(part.begin - area.whole().begin);
}

int allocate(const Area &area, Range part, int mode)
{
    return result(fallocate(area.descriptor, mode, offset_of(area, part), static_cast<off_t>(part.size())) == 0);
}

// Linux 6.8; older headers lack it.
struct MoveRequest {
    __u64 dst, src, len, mode;
    __s64 move;
};
constexpr unsigned long kMove = _IOWR(0xAA, 0x05, MoveRequest);
constexpr __u64 kFeatureMove = 1u << 16;

} // namespace

int unmap(const Area &, Range part)
{
    return result(munmap(part.address(), part.size()) == 0);
}

int unmap_raw(const Area &, Range part)
{
    return result(syscall(SYS_munmap, part.address(), part.size()) == 0);
}

int unmap_by_vfork_child(const Area &, Range part)
{
    alignas(16) static char stack[16384];
    static Range range;
    range = part;
    const pid_t child = clone(
        [](void *) {
            _exit(syscall(SYS_munmap, range.address(), range.size()) == 0 ? 0 : EFAULT);
            return 0;
        },
        stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, nullptr);
    return child < 0 ? errno : wait_for(child);
}

int give_to_free(const Area &area, Range)
{
    std::free(area.block);
    return 0;
}

int reallocate(const Area &area, Range)
{
    void *const moved = std::realloc(area.block, std::size_t{64} << 20);
    return !moved ? ENOMEM : moved == area.block ? kDoesNotApply : 0;
}

int shrink_heap(const Area &area, Range part)
{
    const auto end = reinterpret_cast<std::uintptr_t>(sbrk(0));
    if (end < part.end || end > part.end + area.unit)
        return kDoesNotApply; // the C library has grown the heap meanwhile
    return result(brk(part.address()) == 0);
}

int map_over(const Area &, Range part)
{
    return result(mmap(part.address(), part.size(), kReadWrite, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
}

int map_shared_over(const Area &, Range part)
{
    return result(mmap(part.address(), part.size(), kReadWrite, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
}

int move_away(const Area &, Range part)
{
    void *const place = place_for(part.size());
    return result(mremap(part.address(), part.size(), part.size(), MREMAP_MAYMOVE | MREMAP_FIXED, place) == place);
}

int shrink(const Area &area, Range part)
{
    return result(mremap(part.address(), part.size(), area.count() / 2 * area.unit, 0) == part.address());
}

int move_contents_away(const Area &, Range part)
{
    return result(mremap(part.address(), part.size(), part.size(), MREMAP_MAYMOVE | MREMAP_DONTUNMAP, nullptr) != MAP_FAILED);
}

int move_onto(const Area &, Range part)
{
    void *const other = mmap(nullptr, part.size(), kReadWrite, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (other == MAP_FAILED)
        return errno;
    std::memset(other, 'm', part.size());
    return result(mremap(other, part.size(), part.size(), MREMAP_MAYMOVE | MREMAP_FIXED, part.address()) == part.address());
}

int guard(const Area &, Range part)
{
    if (madvise(part.address(), part.size(), kGuardInstall) != 0)
        return errno;
    return result(madvise(part.address(), part.size(), kGuardRemove) == 0);
}

int detach(const Area &area, Range)
{
    return result(shmdt(area.start) == 0);
}

int attach_over(const Area &, Range part)
{
    const int segment = shmget(IPC_PRIVATE, part.size(), IPC_CREAT | 0600);
    if (segment < 0)
        return errno;
    const bool is_done = shmat(segment, part.address(), SHM_REMAP) == part.address();
    const int error = errno;
    shmctl(segment, IPC_RMID, nullptr);
    errno = error;
    return result(is_done);
}

// The file's first pages in the place of these.
int remap_pages(const Area &, Range part)
{
    return result(syscall(SYS_remap_file_pages, part.address(), part.size(), 0, 0, 0) == 0);
}

int truncate(const Area &area, Range)
{
    return result(ftruncate(area.descriptor, 0) == 0 && ftruncate(area.descriptor, static_cast<off_t>(area.bytes)) == 0);
}

int punch_hole(const Area &area, Range part)
{
    return allocate(area, part, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
}

int zero_range(const Area &area, Range part)
{
    return allocate(area, part, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE);
}

int collapse_range(const Area &area, Range part)
{
    const int error = allocate(area, part, FALLOC_FL_COLLAPSE_RANGE);
    return error != 0 ? error : result(ftruncate(area.descriptor, static_cast<off_t>(area.bytes)) == 0);
}

// To memory that a userfaultfd of its own watches; the source's userfaultfd isn't asked.
int take_pages(const Area &, Range part)
{
    const Fd fd(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | 1 /* UFFD_USER_MODE_ONLY */)));
    uffdio_api api{};
    api.api = UFFD_API;
    api.features = kFeatureMove;
    if (!fd || ioctl(fd.number(), UFFDIO_API, &api) != 0)
        return errno;
    void *const place = mmap(nullptr, part.size(), kReadWrite, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uffdio_register wish{};
    wish.range = {reinterpret_cast<std::uintptr_t>(place), part.size()};
    wish.mode = UFFDIO_REGISTER_MODE_MISSING;
    if (place == MAP_FAILED || ioctl(fd.number(), UFFDIO_REGISTER, &wish) != 0)
        return errno;
    MoveRequest request{wish.range.start, part.begin, part.size(), 0, 0};
    return result(ioctl(fd.number(), kMove, &request) == 0);
}

int protect_and_allow(const Area &area, Range part)
{
    const int rights = area.is_writable ? kReadWrite : PROT_READ;
    return result(mprotect(part.address(), part.size(), PROT_NONE) == 0 && mprotect(part.address(), part.size(), rights) == 0);
}

int lock_and_unlock(const Area &, Range part)
{
    return result(mlock(part.address(), part.size()) == 0 && munlock(part.address(), part.size()) == 0);
}

// Both write to what was shared for a moment, the parent while the child is there.
int fork_and_write(const Area &area, Range part)
{
    int ends[2];
    if (pipe(ends) != 0)
        return errno;
    const pid_t child = fork();
    if (child < 0)
        return errno;
    char byte = 0;
    if (child == 0) {
        alarm(60);
        close(ends[1]);
        for (std::uintptr_t at = part.begin; area.is_writable && at < part.end; at += area.unit) {
            auto *const first = reinterpret_cast<volatile char *>(at);
            *first = *first;
        }
        _exit(read(ends[0], &byte, 1) == 0 ? 0 : EIO);
    }
    for (std::uintptr_t at = part.begin; area.is_writable && at < part.end; at += area.unit) {
        auto *const first = reinterpret_cast<volatile char *>(at);
        *first = *first;
    }
    close(ends[0]);
    close(ends[1]);
    return wait_for(child);
}

int spawn(const Area &, Range)
{
    char name[] = "true";
    char *const arguments[] = {name, nullptr};
    pid_t child = -1;
    const int error = posix_spawnp(&child, name, nullptr, nullptr, arguments, environ);
    return error != 0 ? error : wait_for(child);
}

int huge_and_not(const Area &, Range part)
{
    return result(madvise(part.address(), part.size(), MADV_HUGEPAGE) == 0 &&
                  madvise(part.address(), part.size(), MADV_NOHUGEPAGE) == 0);
}

int merge_and_not(const Area &, Range part)
{
    return result(madvise(part.address(), part.size(), MADV_MERGEABLE) == 0 &&
                  madvise(part.address(), part.size(), MADV_UNMERGEABLE) == 0);
}

int fork_and_not(const Area &, Range part)
{
    return result(madvise(part.address(), part.size(), MADV_DONTFORK) == 0 &&
                  madvise(part.address(), part.size(), MADV_DOFORK) == 0);
}

int move_between_nodes(const Area &, Range part)
{
    void *page = part.address();
    int node = 0, status = 0;
    constexpr int kMoveOwn = 2; // MPOL_MF_MOVE
    return result(syscall(SYS_move_pages, 0, 1, &page, &node, &status, kMoveOwn) >= 0);
}

int change_others(const Area &area, Range)
{
    for (int i = 0; i < 100; ++i) {
        void *const other = mmap(nullptr, area.bytes, kReadWrite, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (other == MAP_FAILED)
            return errno;
        *static_cast<volatile char *>(other) = 'o';
        madvise(other, area.bytes, MADV_DONTNEED);
        munmap(other, area.bytes);
    }
    return 0;
}

int advise_with(Range part, int advice)
{
    return result(madvise(part.address(), part.size(), advice) == 0);
}

int advise_process(int pid, Range part, int advice)
{
    const Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (!process)
        return errno;
    iovec piece{part.address(), part.size()};
    return result(syscall(SYS_process_madvise, process.number(), &piece, 1, advice, 0) == static_cast<long>(part.size()));
}

int own_pid()
{
    return getpid();
}

int parents_pid()
{
    return getppid();
}

} // namespace regcache::test
