#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# NetPIPE, a program of somebody else's, checks its own data over the provider.
. "$SOURCE_DIR/test/support/shell.sh"
. "$SOURCE_DIR/test/support/mpi.sh"
need mpirun openmpi-bin
need NPopenmpi netpipe-openmpi
skip_under_sanitizer "MPI programs can't load it"

export FI_PROVIDER=regcache FI_REGCACHE_STATS=yes
out=$SCRATCH_DIR/out
cd "$SCRATCH_DIR" || exit 99
mpi 2 NPopenmpi -i -n 3 -l 65536 -u 1048576 >"$out" 2>&1 || { tail -n 30 "$out"; fail "NetPIPE's integrity check: status $?"; }
grep -a -i -E 'integrity|fail' "$out" | head -n 5
! grep -a -q -i 'integrity check failed' "$out" || fail "NetPIPE found wrong data"
mpi 2 NPopenmpi -n 5 -u 1048576 >"$out" 2>&1 || { tail -n 30 "$out"; fail "NetPIPE: status $?"; }
[ "$(numbers "$out" hits)" -gt 0 ] || fail "nothing hit"
echo "passed"
