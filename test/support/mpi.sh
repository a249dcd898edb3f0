# SPDX-License-Identifier: BSD-2-Clause
# How tests run an MPI program over the provider: on this machine, with any number of cores, and never for ever.
# shellcheck shell=sh

# mpi RANKS PROGRAM [ARGUMENT...]: Open MPI over libfabric; FI_PROVIDER and the like come from the caller's environment.
mpi() {
    _ranks=$1
    shift
    # Open MPI refuses root and more ranks than cores unless it is told; its own messages stay on this machine.
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
        OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 \
        OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi OMPI_MCA_hwloc_base_binding_policy=none \
        timeout -k 5 "${MPI_LIMIT_S:-200}" mpirun -n "$_ranks" "$@" </dev/null
}

# numbers FILE KEY: the sum of that number over the statistics lines in FILE.
numbers() {
    sed -n 's/.*regcache: statistics {\(.*\)}.*/\1/p' "$1" |
        tr ',' '\n' | awk -F': ' -v key="\"$2\"" '{ gsub(/^ +/, "", $1) } $1 == key { sum += $2 } END { print sum + 0 }'
}
