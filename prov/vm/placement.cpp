// SPDX-License-Identifier: BSD-2-Clause
// Asks hwloc, loaded when it is needed, which cores share the process's NUMA nodes.
#include "vm/placement.hpp"

#ifdef REGCACHE_HAVE_HWLOC

#include <dlfcn.h>
#include <hwloc.h>
#include <sched.h>
#include <unistd.h>


namespace regcache {
namespace {

#if HWLOC_API_VERSION >= 0x00020000
constexpr char kLibrary[] = "libhwloc.so.15"; // the ABI of hwloc 2
#else
#error "hwloc 2 is needed; configure --without-hwloc builds without it"
#endif

// libhwloc's functions, found by name: the provider is loaded into every program that uses libfabric, hwloc only into
// those that need it.
class Hwloc {
public:
    Hwloc() noexcept : library_(dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL))
    {
        is_whole_ = library_ && find(topology_init, "hwloc_topology_init") && find(topology_load, "hwloc_topology_load") &&
                    find(topology_destroy, "hwloc_topology_destroy") &&
                    find(set_all_types_filter, "hwloc_topology_set_all_types_filter") &&
                    find(get_allowed_cpuset, "hwloc_topology_get_allowed_cpuset") &&
                    find(get_nbobjs, "hwloc_get_nbobjs_by_depth") && find(get_obj, "hwloc_get_obj_by_depth") &&
                    find(intersects, "hwloc_bitmap_intersects") && find(isset, "hwloc_bitmap_isset") &&
                    find(set, "hwloc_bitmap_set") && find(alloc, "hwloc_bitmap_alloc") && find(free, "hwloc_bitmap_free");
    }
    Hwloc(const Hwloc &) = delete;
    Hwloc &operator=(const Hwloc &) = delete;
    ~Hwloc()
    {
        if (library_)
            dlclose(library_);
    }

    bool is_whole() const noexcept { return is_whole_; }

    decltype(&hwloc_topology_init) topology_init = nullptr;
    decltype(&hwloc_topology_load) topology_load = nullptr;
    decltype(&hwloc_topology_destroy) topology_destroy = nullptr;
    decltype(&hwloc_topology_set_all_types_filter) set_all_types_filter = nullptr;
    decltype(&hwloc_topology_get_allowed_cpuset) get_allowed_cpuset = nullptr;
    decltype(&hwloc_get_nbobjs_by_depth) get_nbobjs = nullptr;
    decltype(&hwloc_get_obj_by_depth) get_obj = nullptr;
    decltype(&hwloc_bitmap_intersects) intersects = nullptr;
    decltype(&hwloc_bitmap_isset) isset = nullptr;
    decltype(&hwloc_bitmap_set) set = nullptr;
    decltype(&hwloc_bitmap_alloc) alloc = nullptr;
    decltype(&hwloc_bitmap_free) free = nullptr;

private:
    template <class Function>
    bool find(Function &function, const char *name) noexcept
    {
        function = reinterpret_cast<Function>(dlsym(library_, name));
        return function != nullptr;
    }

    void *library_;
    bool is_whole_ = false;
};

// Adds the allowed cores of every NUMA node that has a core in `cores`. False when the topology can't be had.
bool widen_to_nodes(const Hwloc &hwloc, cpu_set_t &cores) noexcept
{
    hwloc_topology_t topology = nullptr;
    if (hwloc.topology_init(&topology) != 0)
        return false;
    hwloc.set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE); // nodes and cores are kept anyhow
    hwloc_bitmap_t bound = hwloc.alloc();
    const bool is_loaded = bound && hwloc.topology_load(topology) == 0;
    if (is_loaded) {
        for (unsigned core = 0; core < CPU_SETSIZE; ++core)
            if (CPU_ISSET(core, &cores))
                hwloc.set(bound, core);
        const hwloc_const_bitmap_t allowed = hwloc.get_allowed_cpuset(topology);
        const auto nodes = static_cast<unsigned>(hwloc.get_nbobjs(topology, HWLOC_TYPE_DEPTH_NUMANODE));
        for (unsigned i = 0; i < nodes; ++i) {
            const hwloc_obj_t node = hwloc.get_obj(topology, HWLOC_TYPE_DEPTH_NUMANODE, i);
            if (!node || !hwloc.intersects(node->cpuset, bound))
                continue;
            for (unsigned core = 0; core < CPU_SETSIZE; ++core)
                if (hwloc.isset(node->cpuset, core) && hwloc.isset(allowed, core))
                    CPU_SET(core, &cores);
        }
    }
    hwloc.free(bound);
    hwloc.topology_destroy(topology);
    return is_loaded;
}

} // namespace

bool let_run_near_process(pthread_t thread) noexcept
{
    cpu_set_t cores;
    if (pthread_getaffinity_np(pthread_self(), sizeof cores, &cores) != 0)
        return false;
    const int bound = CPU_COUNT(&cores);
    if (bound >= sysconf(_SC_NPROCESSORS_ONLN))
        return false;
    const Hwloc hwloc;
    if (!hwloc.is_whole() || !widen_to_nodes(hwloc, cores) || CPU_COUNT(&cores) == bound)
        return false;
    return pthread_setaffinity_np(thread, sizeof cores, &cores) == 0;
}

} // namespace regcache

#else

namespace regcache {

bool let_run_near_process(pthread_t) noexcept
{
    return false;
}

} // namespace regcache

#endif
