#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What the library is to programs that don't choose it: nothing. And how a program ends that leaves everything open: by
# itself, with its numbers if it was told to print them.
. "$SOURCE_DIR/test/support/shell.sh"
user=$BUILD_DIR/test/prov/user
cd "$SCRATCH_DIR" || exit 99
mkdir empty

for provider in tcp shm sockets; do
    FI_PROVIDER=$provider FI_PROVIDER_PATH=$SCRATCH_DIR/empty "$user" plain >without 2>errors || { cat errors; continue; }
    FI_PROVIDER=$provider FI_PROVIDER_PATH=$BUILD_DIR/.libs "$user" plain >with || fail "$provider beside the library"
    cmp without with || { diff without with; fail "$provider: the library changes what the process holds"; }
    grep -q '^0 mappings are watched$' with || fail "$provider: mappings are watched"
    echo "$provider: $(grep -c ^thread with) threads and $(grep -c ^descriptor with) descriptors, with and without it"
done
FI_PROVIDER=regcache FI_REGCACHE_LOWER=tcp "$user" plain >chosen || fail "regcache itself"
grep -q '^thread regcache-' chosen || { cat chosen; fail "this test doesn't see the cache's threads"; }

# What is left open is a leak to a sanitizer.
ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0
export ASAN_OPTIONS
for lower in tcp shm pin; do
    for stats in yes no; do
        FI_REGCACHE_STATS=$stats "$user" leave $lower >out 2>errors
        status=$?
        if [ "$lower" = pin ] && grep -q 'finds no' errors; then
            echo "pin can't be used here"
            continue
        fi
        [ $status = 0 ] || { cat out errors; fail "a program that leaves $lower open ends with status $status"; }
        grep -q '^open$' out || fail "it opened nothing"
        lines=$(grep -c '^regcache: statistics {.*}$' errors)
        wanted=0
        [ "$stats" = no ] || wanted=1
        [ "$lines" = "$wanted" ] || { cat errors; fail "FI_REGCACHE_STATS=$stats: $lines lines of numbers"; }
        if [ "$wanted" = 1 ]; then
            grep -q '"asked": 5, "hits": 0, "misses": 5' errors || { cat errors; fail "the numbers are wrong"; }
        fi
    done
done
echo "passed"
