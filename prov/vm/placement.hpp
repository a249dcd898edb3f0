// SPDX-License-Identifier: BSD-2-Clause
// Where the thread that reads events may run: near the process, not only on the cores that the process is bound to.
#pragma once

#include <pthread.h>

namespace regcache {

// An MPI rank is usually bound to one core, and a thread that it starts would share that core with it: whoever changes
// watched memory would wait for a thread that waits for the core. If the process is bound, this lets `thread` run on
// every allowed core of the NUMA nodes that the process's cores belong to; the scheduler finds a free one. Without a
// binding, without hwloc, or when anything fails, nothing is changed. Returns whether it was changed.
//
// Loads libhwloc and a topology of nodes and cores (some milliseconds), and only for a process that is bound.
bool let_run_near_process(pthread_t thread) noexcept;

} // namespace regcache
