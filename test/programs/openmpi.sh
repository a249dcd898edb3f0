#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Open MPI over the provider, with nothing else set than the two choices that make it use libfabric on one node: it runs,
# picks ofi_rxm over regcache, every byte is right, and the cache works.
. "$SOURCE_DIR/test/support/shell.sh"
. "$SOURCE_DIR/test/support/mpi.sh"
need mpirun openmpi-bin
need_program test/mpi/churn "MPI (libopenmpi-dev)"
skip_under_sanitizer "MPI programs can't load it"

export FI_PROVIDER=regcache FI_REGCACHE_STATS=yes
out=$SCRATCH_DIR/out

run() { # RANKS ARGUMENT...
    ranks=$1
    shift
    mpi "$ranks" "$BUILD_DIR/test/mpi/churn" "$@" >"$out" 2>&1 || { tail -n 30 "$out"; fail "$ranks ranks, churn $*: status $?"; }
    grep -a '^churn: .* 0 wrong$' "$out" || { tail -n 30 "$out"; fail "no line that says 0 wrong"; }
    [ "$(grep -a -c 'regcache: statistics' "$out")" -ge "$ranks" ] ||
        { tail -n 30 "$out"; fail "not every rank went through regcache"; }
}

run 2 --kept --rounds 20
[ "$(numbers "$out" hits)" -gt 0 ] || fail "nothing hit with kept buffers"
run 2 --freed --rounds 10
[ "$(numbers "$out" invalidations)" -gt 0 ] || fail "nothing was invalidated with freed buffers"
run 2 --mixed --rounds 10
run 4 --freed --rounds 3 --largest 1000000
run 4 --mixed --rounds 3 --largest 1000000
FI_LOG_LEVEL=info mpi 2 "$BUILD_DIR/test/mpi/churn" --rounds 1 >"$out" 2>&1 || fail "run with libfabric's log: status $?"
grep -a -q 'ofi_rxm:regcache:' "$out" || { grep -a regcache "$out" | head -n 20; fail "ofi_rxm isn't over regcache"; }
echo "passed"
