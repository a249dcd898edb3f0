// SPDX-License-Identifier: BSD-2-Clause
// vm/placement.cpp: where the thread that reads events may run.
#include "vm/placement.hpp"

#include "support/eventually.hpp"
#include "support/real_sources.hpp"

#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include <criterion/criterion.h>

using namespace regcache;
using namespace regcache::test;

namespace {

cpu_set_t cores_of(pthread_t thread)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    pthread_getaffinity_np(thread, sizeof cores, &cores);
    return cores;
}

// Binds the calling thread to the first of its cores.
void bind()
{
    const cpu_set_t cores = cores_of(pthread_self());
    for (unsigned core = 0; core < CPU_SETSIZE; ++core)
        if (CPU_ISSET(core, &cores)) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(core, &one);
            pthread_setaffinity_np(pthread_self(), sizeof one, &one);
            return;
        }
}

bool has_hwloc()
{
#ifdef REGCACHE_HAVE_HWLOC
    void *const library = dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL);
    if (library)
        dlclose(library);
    return library != nullptr;
#else
    return false;
#endif
}

// A thread that does nothing, made by a thread that is bound to one core.
struct Moved {
    bool was_moved = false;
    int cores_before = 0, cores_after = 0;
};

Moved move_from_one_core()
{
    Moved moved;
    on_own_thread([&] {
        bind();
        std::atomic<bool> is_over{false};
        std::thread idle([&] { eventually([&] { return is_over.load(); }); });
        cpu_set_t cores = cores_of(idle.native_handle());
        moved.cores_before = CPU_COUNT(&cores);
        moved.was_moved = let_run_near_process(idle.native_handle());
        cores = cores_of(idle.native_handle());
        moved.cores_after = CPU_COUNT(&cores);
        is_over = true;
        idle.join();
    });
    return moved;
}

} // namespace

Test(placement, process_that_is_not_bound_is_left_alone)
{
    const cpu_set_t cores = cores_of(pthread_self());
    if (CPU_COUNT(&cores) < sysconf(_SC_NPROCESSORS_ONLN))
        skip("the tests are bound to a part of the cores");
    cr_expect(!let_run_near_process(pthread_self()));
    const cpu_set_t after = cores_of(pthread_self());
    cr_expect(CPU_EQUAL(&cores, &after));
}

Test(placement, thread_of_a_bound_process_may_run_on_its_neighbours)
{
    const cpu_set_t cores = cores_of(pthread_self());
    if (!has_hwloc())
        skip("hwloc isn't there, or the build is without it");
    if (CPU_COUNT(&cores) < 2)
        skip("there is one core here");
    const Moved moved = move_from_one_core();
    cr_expect(moved.cores_before == 1);
    // A machine may have nodes of one core each; then nothing changes.
    cr_expect(moved.was_moved == (moved.cores_after > 1));
    if (sysconf(_SC_NPROCESSORS_ONLN) == 2 && access("/sys/devices/system/node/node1", F_OK) != 0)
        cr_expect(moved.cores_after == 2);
}

Test(placement, without_hwloc_nothing_changes)
{
    if (has_hwloc())
        skip("hwloc is there");
    const Moved moved = move_from_one_core();
    cr_expect(!moved.was_moved && moved.cores_after == 1);
}

Test(placement, source_of_a_bound_process_works)
{
    on_own_thread([] {
        bind();
        try {
            const Userfaultfd source(false);
            cr_expect(source.is_quiet());
        } catch (const Error &) {
        }
    });
}
