// SPDX-License-Identifier: BSD-2-Clause
// The memory monitor that never starts.
#include "ofi/lower_cache.hpp"

#include "sys/log.hpp"

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext.h>

#include <cstdlib>
#include <cstring>
#include <mutex>

namespace regcache {
namespace {

int start(fid_mem_monitor *)
{
    return -FI_ENOSYS;
}
void stop(fid_mem_monitor *) {}
int subscribe(fid_mem_monitor *, const void *, std::size_t)
{
    return -FI_ENOSYS;
}
void unsubscribe(fid_mem_monitor *, const void *, std::size_t) {}
bool is_valid(fid_mem_monitor *, const void *, std::size_t)
{
    return false;
}

constinit fi_ops_mem_monitor monitor_ops = {
    .size = sizeof(fi_ops_mem_monitor),
    .start = start,
    .stop = stop,
    .subscribe = subscribe,
    .unsubscribe = unsubscribe,
    .valid = is_valid,
};
constinit fid_mem_monitor monitor = {
    .fid = {.fclass = FI_CLASS_MEM_MONITOR, .context = nullptr, .ops = nullptr}, // libfabric puts its operations in
    .export_ops = &monitor_ops,
    .import_ops = nullptr,
};
constinit std::mutex importing;

bool are_caches_off_anyhow() noexcept
{
    const char *const chosen = std::getenv("FI_MR_CACHE_MONITOR");
    const char *const most = std::getenv("FI_MR_CACHE_MAX_COUNT");
    return (chosen && std::strcmp(chosen, "disabled") == 0) || (most && std::strcmp(most, "0") == 0);
}

bool import_monitor() noexcept
{
    fid *caches = nullptr;
    if (fi_open(FI_VERSION(1, 13), "mr_cache", nullptr, 0, 0, &caches, nullptr) != 0)
        return false;
    const int error = fi_import_fid(caches, &monitor.fid, 0);
    fi_close(caches);
    return error == 0;
}

} // namespace

LowerCache keep_lower_caches_off() noexcept
{
    if (are_caches_off_anyhow())
        return LowerCache::Off;
    const std::lock_guard guard(importing);
    return monitor.fid.ops || import_monitor() ? LowerCache::Off : LowerCache::Unknown;
}

void take_back_monitor() noexcept
{
    const std::lock_guard guard(importing);
    if (monitor.fid.ops)
        fi_close(&monitor.fid);
    monitor.fid.ops = nullptr;
}

} // namespace regcache
