// SPDX-License-Identifier: BSD-2-Clause
// The table of operations. How each is done is in vm_system.hpp.
#include "contract/vm_operations.hpp"

#include "contract/vm_system.hpp"

namespace regcache::test {
namespace {

using enum Part;
using enum Effect;
using K = AreaKind;

// Unmaps, moves and maps over.
constexpr Kinds kAnyUnmappable = kAnyKind;
// What mremap takes: hugetlb can be moved, not by these sizes.
constexpr Kinds kMovable = kAnyKind & ~bit(K::HugeTlb);
// madvise(MADV_FREE) and guards: anonymous memory only; not huge pages.
constexpr Kinds kPlainAnonymous = kAnonymous & ~bit(K::HugeTlb);

constexpr Operation kOperations[] = {
    {"munmap", kAnyUnmappable, Whole, Changes, Told::Rightly, unmap},
    {"munmap of the first page", kAnyUnmappable, First, Changes, Told::Rightly, unmap},
    {"munmap of a page in the middle", kAnyUnmappable, Middle, Changes, Told::Rightly, unmap},
    {"munmap of the last page", kAnyUnmappable, Last, Changes, Told::Rightly, unmap},
    {"munmap as a raw system call", kAnyUnmappable, Whole, Changes, Told::Rightly, unmap_raw},
    {"munmap by a vfork child", kAnyUnmappable, Middle, Changes, Told::Rightly, unmap_by_vfork_child},
    {"free", bit(K::Malloc), Whole, Changes, Told::Rightly, give_to_free, 0, false, false, true},
    {"realloc that moves", bit(K::Malloc), Whole, Changes, Told::Rightly, reallocate, 0, false, false, true},
    {"brk to a smaller heap", bit(K::Heap), Last, Changes, Told::Rightly, shrink_heap},
    {"mmap(MAP_FIXED) over it", kAnyUnmappable, Middle, Changes, Told::Rightly, map_over},
    {"mmap(MAP_FIXED) of shared memory over it", kAnyUnmappable, Middle, Changes, Told::Rightly, map_shared_over},
    {"mremap to another place", kMovable, Whole, Changes, Told::Rightly, move_away},
    {"mremap of a page in the middle", kMovable, Middle, Changes, Told::Rightly, move_away},
    {"mremap to a smaller size", kMovable, Whole, Changes, Told::Rightly, shrink},
    {"mremap(MREMAP_DONTUNMAP)", kMovable, Whole, Changes, Told::Rightly, move_contents_away, kShared},
    {"mremap of other memory onto it", kMovable, Middle, Changes, Told::Rightly, move_onto},
    {"madvise(MADV_DONTNEED)", kAnyKind, Whole, Changes, Told::Rightly, advise<kDontNeed>, kShared | K::Rodata},
    {"madvise(MADV_DONTNEED) of a page in the middle", kAnyKind, Middle, Changes, Told::Rightly, advise<kDontNeed>,
     kShared | K::Rodata},
    {"madvise(MADV_DONTNEED_LOCKED)", kAnyKind, Middle, Changes, Told::Rightly, advise<kDontNeedLocked>, kShared | K::Rodata},
    {"process_madvise(MADV_DONTNEED)", kAnyKind, Middle, Changes, Told::Rightly, process_advise<kDontNeed>, kShared | K::Rodata},
    {"madvise(MADV_REMOVE)", kShared, Middle, Changes, Told::Rightly, advise<kRemove>},
    {"madvise(MADV_GUARD_INSTALL)", kAnyKind & ~bit(K::HugeTlb), Middle, Changes, Told::Never, guard, kShared | K::Rodata},
    {"shmdt", bit(K::SysV), Whole, Changes, Told::Never, detach},
    {"shmat(SHM_REMAP) over it", kAnyKind & ~bit(K::HugeTlb), Middle, Changes, Told::Never, attach_over},
    {"remap_file_pages", K::SharedAnonymous | K::Memfd | K::SysV | K::FileShared, Middle, Changes, Told::Never, remap_pages},
    {"ftruncate", kWithDescriptor, Whole, Changes, Told::Never, truncate},
    {"ftruncate by another process", kWithDescriptor, Whole, Changes, Told::Never, truncate, 0, true},
    {"fallocate(PUNCH_HOLE)", kWithDescriptor, Middle, Changes, Told::Never, punch_hole, bit(K::FilePrivate)},
    {"fallocate(PUNCH_HOLE) by another process", kWithDescriptor, Middle, Changes, Told::Never, punch_hole, bit(K::FilePrivate),
     true},
    {"fallocate(ZERO_RANGE)", kWithDescriptor, Middle, Changes, Told::Never, zero_range, bit(K::FilePrivate)},
    {"fallocate(ZERO_RANGE) by another process", kWithDescriptor, Middle, Changes, Told::Never, zero_range, bit(K::FilePrivate),
     true},
    {"fallocate(COLLAPSE_RANGE)", K::FilePrivate | K::FileShared, Middle, Changes, Told::Never, collapse_range},
    {"fallocate(COLLAPSE_RANGE) by another process", K::FilePrivate | K::FileShared, Middle, Changes, Told::Never,
     collapse_range, 0, true},
    {"UFFDIO_MOVE of its pages to elsewhere", kPlainAnonymous, Middle, Changes, Told::Never, take_pages},

    {"mprotect to nothing and back", kAnyKind, Whole, Keeps, Told::Rightly, protect_and_allow},
    {"mlock and munlock", kAnyKind, Whole, Keeps, Told::Rightly, lock_and_unlock},
    {"fork", kAnyKind, Whole, Keeps, Told::Rightly, fork_and_write, 0, false, true},
    {"posix_spawn", kAnyKind, Whole, Keeps, Told::Rightly, spawn},
    {"munmap by another process of its own", kShared, Whole, Keeps, Told::Rightly, unmap, 0, true},
    {"madvise(MADV_FREE)", kPlainAnonymous, Middle, Keeps, Told::Needlessly, advise<kFree>},
    {"madvise(MADV_COLD)", kAnyKind & ~bit(K::HugeTlb), Whole, Keeps, Told::Rightly, advise<kCold>},
    {"madvise(MADV_PAGEOUT)", kAnyKind & ~bit(K::HugeTlb), Whole, Keeps, Told::Rightly, advise<kPageOut>},
    {"process_madvise(MADV_PAGEOUT) by another process", kAnyKind & ~bit(K::HugeTlb), Whole, Keeps, Told::Rightly,
     process_advise_parent<kPageOut>, 0, true},
    {"madvise(MADV_COLLAPSE)", kAnyKind & ~bit(K::HugeTlb), Whole, Keeps, Told::Rightly, advise<kCollapse>},
    {"madvise(MADV_HUGEPAGE), MADV_NOHUGEPAGE", kAnyKind & ~bit(K::HugeTlb), Whole, Keeps, Told::Rightly, huge_and_not},
    {"madvise(MADV_MERGEABLE), MADV_UNMERGEABLE", kAnyKind & ~bit(K::HugeTlb), Whole, Keeps, Told::Rightly, merge_and_not},
    {"madvise(MADV_POPULATE_WRITE)", kAnyKind & ~bit(K::Rodata), Whole, Keeps, Told::Rightly, advise<kPopulateWrite>},
    {"madvise(MADV_DONTFORK), MADV_DOFORK", kAnyKind, Whole, Keeps, Told::Rightly, fork_and_not},
    {"move_pages to the same node", kAnyKind, Middle, Keeps, Told::Rightly, move_between_nodes},
    {"mapping and unmapping beside it", kAnyKind, Whole, Keeps, Told::Rightly, change_others},
};

} // namespace

std::span<const Operation> operations()
{
    return kOperations;
}

Range range_of(const Area &area, Part part)
{
    switch (part) {
    case Part::Whole:
        break;
    case Part::First:
        return area.units(0, 1);
    case Part::Middle:
        return area.units(area.count() / 2, 1);
    case Part::Last:
        return area.units(area.count() - 1, 1);
    }
    return area.whole();
}

} // namespace regcache::test
