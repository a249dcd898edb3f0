// SPDX-License-Identifier: BSD-2-Clause
// How each operation of the table is done: system calls. Each gives 0, an errno, or kDoesNotApply.
#pragma once

#include "contract/vm_operations.hpp"

namespace regcache::test {

// include/uapi/asm-generic/mman-common.h; older headers lack the newer ones.
inline constexpr int kDontNeed = 4, kFree = 8, kRemove = 9, kCold = 20, kPageOut = 21, kPopulateWrite = 23,
                     kDontNeedLocked = 24, kCollapse = 25, kGuardInstall = 102, kGuardRemove = 103;

int unmap(const Area &area, Range part);
int unmap_raw(const Area &area, Range part);
int unmap_by_vfork_child(const Area &area, Range part);
int give_to_free(const Area &area, Range part);
int reallocate(const Area &area, Range part);
int shrink_heap(const Area &area, Range part);
int map_over(const Area &area, Range part);
int map_shared_over(const Area &area, Range part);
int move_away(const Area &area, Range part);
int shrink(const Area &area, Range part);
int move_contents_away(const Area &area, Range part);
int move_onto(const Area &area, Range part);
int guard(const Area &area, Range part);
int detach(const Area &area, Range part);
int attach_over(const Area &area, Range part);
int remap_pages(const Area &area, Range part);
int truncate(const Area &area, Range part);
int punch_hole(const Area &area, Range part);
int zero_range(const Area &area, Range part);
int collapse_range(const Area &area, Range part);
int take_pages(const Area &area, Range part);
int protect_and_allow(const Area &area, Range part);
int lock_and_unlock(const Area &area, Range part);
int fork_and_write(const Area &area, Range part);
int spawn(const Area &area, Range part);
int huge_and_not(const Area &area, Range part);
int merge_and_not(const Area &area, Range part);
int fork_and_not(const Area &area, Range part);
int move_between_nodes(const Area &area, Range part);
int change_others(const Area &area, Range part);

int advise_with(Range part, int advice);
int advise_process(int pid, Range part, int advice);
int own_pid();
int parents_pid();

template <int Advice>
int advise(const Area &, Range part)
{
    return advise_with(part, Advice);
}
template <int Advice>
int process_advise(const Area &, Range part)
{
    return advise_process(own_pid(), part, Advice);
}
template <int Advice>
int process_advise_parent(const Area &, Range part)
{
    return advise_process(parents_pid(), part, Advice);
}

} // namespace regcache::test
