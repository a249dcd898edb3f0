#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What fi_info shows: the provider's entries, its parameters, and nothing of it for who didn't ask.
. "$SOURCE_DIR/test/support/shell.sh"
need fi_info libfabric-bin
skip_under_sanitizer "fi_info can't load it"
cd "$SCRATCH_DIR" || exit 99

FI_PROVIDER=regcache fi_info >offered 2>errors || { cat errors; fail "FI_PROVIDER=regcache fi_info: status $?"; }
grep -q '^provider: regcache$' offered || { cat offered; fail "no entry of regcache itself"; }
grep -q '^provider: regcache;ofi_rxm$' offered || { cat offered; fail "no entry of ofi_rxm over regcache"; }
! grep '^provider:' offered | grep -v regcache || fail "another provider is offered"

# The domains are the lower providers' own.
FI_PROVIDER=tcp fi_info -p tcp | sed -n 's/^ *domain: //p' | sort -u >lower
FI_PROVIDER=regcache FI_REGCACHE_LOWER=tcp fi_info -p regcache | sed -n 's/^ *domain: //p' | sort -u >upper
cmp lower upper || { diff lower upper; fail "the domains' names differ from tcp's"; }
FI_PROVIDER=regcache fi_info -d lo >/dev/null || fail "a domain isn't found by the lower provider's name"

fi_info -l | grep -q '^regcache:$' || fail "fi_info -l doesn't list it"
fi_info -p regcache >/dev/null || fail "fi_info -p regcache finds nothing"
FI_PROVIDER=regcache fi_info -e | grep -a -o 'FI_REGCACHE_[A-Z_]*' | sort -u >parameters
for name in LOWER SOURCE MAX_COUNT MAX_SIZE SHARED REMOTE_KEYS STATS OFFER; do
    grep -q "^FI_REGCACHE_$name\$" parameters || fail "fi_info -e doesn't show FI_REGCACHE_$name"
done

# Who doesn't ask for it gets what there was without it. (Addresses aside, which have the process's number in them.)
without() { env -u FI_PROVIDER_PATH "$@"; }
for provider in '' tcp 'tcp;ofi_rxm' udp shm; do
    set -- fi_info -v
    [ -z "$provider" ] || set -- "$@" -p "$provider"
    FI_PROVIDER_PATH=$BUILD_DIR/.libs "$@" >with 2>/dev/null
    without "$@" >plain 2>/dev/null
    sed -i 's/0x[0-9a-f]*//g; s/src_addr: .*//; s/dest_addr: .*//' with plain
    cmp plain with || { diff plain with | head -n 20; fail "the library changes what \"fi_info -v -p '$provider'\" shows"; }
done
FI_PROVIDER=tcp FI_PROVIDER_PATH=$BUILD_DIR/.libs fi_info >with
FI_PROVIDER=tcp without fi_info >plain
cmp plain with || fail "the library changes what FI_PROVIDER=tcp fi_info shows"

# Under strace nothing of the cache is seen: no descriptor, no thread.
if command -v strace >/dev/null && strace -o trace true 2>/dev/null; then
    strace -f -o trace fi_info -p tcp >/dev/null
    ! grep -E 'userfaultfd|regcached|procmap' trace || fail "the cache does something though nobody asked for it"
fi
echo "passed"
