#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# libfabric's own tests through the provider, beside the lower provider alone: none that passes there may fail here.
#
#   REGCACHE_FABTESTS          the folder that fabtests were installed into (bin/runfabtests.sh is there); else it is skipped
#   REGCACHE_FABTESTS_LOWERS   "tcp", "rxm" (tcp under ofi_rxm), "shm": which to compare (default: tcp rxm)
#   REGCACHE_FABTESTS_SET      the set of tests (default: quick)
#
# It takes minutes: TEST_LIMIT_S=3000 make check TESTS=test/fabtests/run.sh
. "$SOURCE_DIR/test/support/shell.sh"
[ -n "${REGCACHE_FABTESTS-}" ] || skip "REGCACHE_FABTESTS names no folder with fabtests"
[ -x "$REGCACHE_FABTESTS/bin/runfabtests.sh" ] || fail "REGCACHE_FABTESTS: there is no $REGCACHE_FABTESTS/bin/runfabtests.sh"
skip_under_sanitizer "fabtests can't load it"
need unshare util-linux
need ip iproute2
unshare --pid --fork --mount-proc --net true 2>/dev/null || skip "namespaces of its own can't be made here; run it as root"
cd "$SCRATCH_DIR" || exit 99

# results PROVIDER FILE: the runner ends every process named fi_* that it sees, so it sees none but its own.
results() {
    unshare --pid --fork --kill-child --mount-proc --net sh -c '
        ip link set lo up
        PATH=$1/bin:$PATH exec runfabtests.sh -t "$2" -T 60 -g 127.0.0.1 "$3"' \
        sh "$REGCACHE_FABTESTS" "${REGCACHE_FABTESTS_SET:-quick}" "$1" >"$2.log" 2>&1 </dev/null
    # A line a test: its name and arguments, the provider, the result.
    sed -n 's/^\(fi_.*\) -p ".*": *\([A-Z][a-z]*\).*$/\1\t\2/p' "$2.log" | sort >"$2"
    [ -s "$2" ] || { tail -n 20 "$2.log"; fail "the runner of $1 has no results"; }
}

number=0
for lower in ${REGCACHE_FABTESTS_LOWERS:-tcp rxm}; do
    case $lower in
        tcp) alone=tcp here=regcache FI_REGCACHE_LOWER=tcp ;;
        rxm) alone='tcp;ofi_rxm' here='regcache;ofi_rxm' FI_REGCACHE_LOWER=tcp ;;
        *) alone=$lower here=regcache FI_REGCACHE_LOWER=$lower ;;
    esac
    export FI_REGCACHE_LOWER
    results "$alone" alone
    results "$here" here
    grep -a Pass alone | cut -f1 | sort -u >passed_alone
    grep -a -v Pass here | grep -a -v -i Notrun | cut -f1 | sort -u >failed_here
    grep -a -i Notrun here | cut -f1 | sort -u >not_run_here
    comm -12 passed_alone failed_here >worse
    comm -12 passed_alone not_run_here >>worse
    echo "$lower: $(grep -a -c Pass here) passed, $(grep -a -c -v -i -e Pass -e Notrun here) failed; alone $(grep -a -c Pass alone)" \
        "passed, $(grep -a -c -v -i -e Pass -e Notrun alone) failed"
    if [ -s worse ]; then
        cat worse
        number=$((number + $(wc -l <worse)))
    fi
done
[ "$number" = 0 ] || fail "$number tests pass with the lower provider alone and don't with regcache"
echo "passed"
