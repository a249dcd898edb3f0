#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# libfabric's fi_pingpong over the provider, its data checked: messages over connected endpoints, ofi_rxm over them, shm.
. "$SOURCE_DIR/test/support/shell.sh"
need fi_pingpong libfabric-bin
skip_under_sanitizer "fi_pingpong can't load it"
cd "$SCRATCH_DIR" || exit 99
export FI_PROVIDER=regcache FI_REGCACHE_STATS=yes

# pair ARGUMENT...: a server, and a client that tries until the server listens.
port=$((20000 + $$ % 10000))
pair() {
    port=$((port + 1))
    timeout -k 5 100 fi_pingpong -B "$port" "$@" >server 2>&1 &
    server=$!
    tries=0
    # The server's control port listens before anything else; /proc tells without connecting to it.
    hex=$(printf '%04X' "$port")
    until grep -q ":$hex .* 0A " /proc/net/tcp /proc/net/tcp6 2>/dev/null; do
        tries=$((tries + 1))
        [ "$tries" -lt 300 ] || { cat server; fail "the server of fi_pingpong $* doesn't listen"; }
        kill -0 "$server" 2>/dev/null || { cat server; fail "the server of fi_pingpong $* ended"; }
        sleep 0.1
    done
    timeout -k 5 100 fi_pingpong -P "$port" "$@" 127.0.0.1 >client 2>&1
    status=$?
    wait "$server"
    served=$?
    [ "$status" = 0 ] && [ "$served" = 0 ] ||
        { cat server client; fail "fi_pingpong $*: client's status $status, server's $served"; }
    grep -a -q 'regcache: statistics' client || { cat client; fail "fi_pingpong $* didn't go through regcache"; }
    echo "fi_pingpong $*: right"
}

for size in 64 65536 1048576 4194304; do
    FI_REGCACHE_LOWER=tcp pair -c -I 10 -e msg -p regcache -S "$size"
    FI_REGCACHE_LOWER=tcp pair -c -I 10 -e rdm -p 'regcache;ofi_rxm' -S "$size"
    if [ "$size" -gt 100000 ]; then
        grep -a -q '"hits": [1-9]' client || { cat client; fail "nothing hit at $size bytes"; }
    fi
done
if FI_PROVIDER=shm fi_info -p shm >/dev/null 2>&1; then
    for size in 64 65536 1048576; do
        FI_REGCACHE_LOWER=shm pair -c -I 10 -e rdm -p regcache -S "$size"
    done
else
    echo "shm: skipped: this libfabric has none"
fi
if FI_PROVIDER=udp fi_info -p udp >/dev/null 2>&1; then
    FI_REGCACHE_LOWER=udp pair -c -I 10 -e dgram -p regcache -d lo -S 64
fi
echo "passed"
