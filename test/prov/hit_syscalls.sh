#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What a hit costs the kernel on userfaultfd: registering and closing what is cached makes one system call, the question
# whether a change is on its way, and no other. On ebpf it makes none.
. "$SOURCE_DIR/test/support/shell.sh"
need strace strace
skip_under_sanitizer "the leak check doesn't work under strace"
cd "$SCRATCH_DIR" || exit 99
strace -o trace true 2>errors || { cat errors; skip "strace can't trace here"; }

count=1000
FI_REGCACHE_STATS=yes strace -f -o trace "$BUILD_DIR/test/prov/user" pairs $count >out 2>&1
status=$?
[ $status = 77 ] && skip "$(sed -n 's/^skipped: //p' out)"
[ $status = 0 ] || { cat out; fail "the program ends with status $status"; }
source=$(sed -n 's/.*"source": "\([a-z]*\)".*/\1/p' out)
case $source in
    userfaultfd) wanted=$count ;;
    ebpf) wanted=0 ;;
    *) skip "the event source here is $source, so nothing hits" ;;
esac

# The calls of the thread that makes the pairs, between its two marks. The cache's own threads sleep beside it. A call that
# another thread's interrupts in the trace has a second line.
awk '/ getpgid\(-1/ { thread = $1; is_between = !is_between; next }
    is_between && $1 == thread && $2 != "<..." { sub(/\(.*/, "", $2); print $2 }' trace >calls
[ "$(grep -c ' getpgid(-1' trace)" = 2 ] || fail "the marks aren't in the trace"
sort calls | uniq -c
others=$(grep -cv '^ioctl$' calls)
[ "$others" = 0 ] || fail "$others other system calls in $count pairs"
ioctls=$(grep -c '^ioctl$' calls)
[ "$ioctls" = $wanted ] || fail "$ioctls ioctls in $count pairs"
grep ' ioctl(' trace | grep -c UFFDIO_WRITEPROTECT | sed 's/$/ of them ask whether a change is on its way/'
echo "passed: $ioctls system calls in $count pairs on $source"
