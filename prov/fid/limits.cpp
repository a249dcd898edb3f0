// SPDX-License-Identifier: BSD-2-Clause
// Reads the machine and the environment of MPI launchers.
#include "fid/limits.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace regcache {
namespace {

// What launchers tell: Open MPI, MPICH and Intel MPI (hydra), MVAPICH, Slurm.
constexpr const char *kLocalRanks[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE",
                                       "PMI_LOCAL_SIZE", "SLURM_NTASKS_PER_NODE"};

// These don't pin what is registered with them.
constexpr const char *kUnpinned[] = {"tcp", "net", "udp", "sockets", "shm", "sm2"};

constexpr std::size_t kMostCount = std::size_t{1} << 20;

std::size_t local_ranks() noexcept
{
    for (const char *name : kLocalRanks)
        if (const char *const value = std::getenv(name))
            if (const long ranks = std::atol(value); ranks > 0)
                return static_cast<std::size_t>(ranks);
    return 1;
}

} // namespace

bool pins(const std::string &lower_provider) noexcept
{
    return std::find(std::begin(kUnpinned), std::end(kUnpinned), lower_provider) == std::end(kUnpinned);
}

CacheLimits default_limits(const std::string &lower_provider, std::size_t device_count) noexcept
{
    CacheLimits limits;
    // The rest is left to what isn't cached, and to other processes on the device.
    limits.max_count = device_count != 0 ? std::clamp(device_count / 2, std::size_t{1}, kMostCount) : kMostCount;
    const auto pages = static_cast<std::size_t>(std::max(0L, sysconf(_SC_PHYS_PAGES)));
    limits.max_bytes = pages * page_size() / 2 / local_ranks();
    rlimit locked{};
    if (pins(lower_provider) && geteuid() != 0 && getrlimit(RLIMIT_MEMLOCK, &locked) == 0 &&
        locked.rlim_cur != RLIM_INFINITY)
        limits.max_bytes = std::min<std::size_t>(limits.max_bytes, locked.rlim_cur / 4 * 3);
    return limits;
}

} // namespace regcache
