#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Allocators that give memory back in their own ways, under an MPI program whose bytes are checked: glibc with several
# thresholds, jemalloc (also with its purging thread), tcmalloc, mimalloc.
. "$SOURCE_DIR/test/support/shell.sh"
. "$SOURCE_DIR/test/support/mpi.sh"
need mpirun openmpi-bin
need_program test/mpi/churn "MPI (libopenmpi-dev)"
skip_under_sanitizer "MPI programs can't load it"
export FI_PROVIDER=regcache FI_REGCACHE_STATS=yes
out=$SCRATCH_DIR/out

churn() { # NAME VARIABLE=VALUE...
    name=$1
    shift
    set -- env "$@" "$BUILD_DIR/test/mpi/churn" --mixed --rounds 6
    mpi 2 "$@" >"$out" 2>&1 || { tail -n 30 "$out"; fail "$name: status $?"; }
    line=$(grep -a '^churn: .* 0 wrong$' "$out") || { tail -n 30 "$out"; fail "$name: no line that says 0 wrong"; }
    echo "$name: $line; $(numbers "$out" hits) hits, $(numbers "$out" invalidations) invalidations"
}

preloaded() { # NAME LIBRARY VARIABLE=VALUE...
    library=$(ldconfig -p | sed -n "s/^[[:space:]]*$2 .*=> //p" | head -n 1)
    [ -n "$library" ] || { echo "$1: skipped: $2 isn't installed"; return; }
    name=$1
    shift 2
    churn "$name" LD_PRELOAD="$library" "$@"
}

churn 'glibc' GLIBC_TUNABLES=
churn 'glibc, mmap from 64 KiB, trims at once' \
    GLIBC_TUNABLES=glibc.malloc.mmap_threshold=65536:glibc.malloc.trim_threshold=0:glibc.malloc.top_pad=0
churn 'glibc, all from one heap' GLIBC_TUNABLES=glibc.malloc.mmap_max=0:glibc.malloc.arena_max=1
preloaded 'jemalloc' 'libjemalloc\.so\.2'
preloaded 'jemalloc, gives back at once' 'libjemalloc\.so\.2' MALLOC_CONF=dirty_decay_ms:0,muzzy_decay_ms:0
preloaded 'jemalloc, purges in the background' 'libjemalloc\.so\.2' \
    MALLOC_CONF=background_thread:true,dirty_decay_ms:1,muzzy_decay_ms:1
preloaded 'tcmalloc' 'libtcmalloc_minimal\.so\.4' TCMALLOC_RELEASE_RATE=10 TCMALLOC_AGGRESSIVE_DECOMMIT=true
preloaded 'mimalloc' 'libmimalloc\.so\.2' MIMALLOC_PAGE_RESET=1 MIMALLOC_RESET_DELAY=0 MIMALLOC_PURGE_DELAY=0
echo "passed"
