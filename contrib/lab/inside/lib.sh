# SPDX-License-Identifier: BSD-2-Clause
# What scripts that run inside the guest share: verdicts, who runs a command, and what the device and the kernel count.
# Read by bash, with BUILD and SOURCE set; results go to /mnt/out.
# shellcheck shell=bash disable=SC2034
set -u
export LC_ALL=C
# rxm's default queue is larger than what rxe offers.
export FI_UNIVERSE_SIZE=16

out=/mnt/out
who=root
number=0
tracing=/sys/kernel/tracing
programs=$BUILD/lab

# as COMMAND...: as "who" says. An ordinary user may lock 96 MiB: rxm takes 33 of them for itself, and two buffers of 16 MiB
# leave little. With 64 neither Open MPI nor fi_pingpong gets that far, with regcache or without.
as() {
    if [ "$who" = root ]; then
        "$@"
    else
        setpriv --reuid="$who" --regid="$(id -g "$who")" --clear-groups --inh-caps=-all --bounding-set=-all \
            prlimit --memlock=$((96 << 20)) env HOME=/run/home USER="$who" "$@"
    fi
}

become() { # USER
    who=$1
    [ "$who" = root ] || install -d -o "$who" -m 700 /run/home
}

# over_regcache COMMAND...: with regcache over verbs and nothing else.
over_regcache() {
    FI_PROVIDER=regcache FI_PROVIDER_PATH=$BUILD/.libs FI_REGCACHE_LOWER=verbs FI_REGCACHE_STATS=yes "$@"
}

# check NAME COMMAND...: passed, failed, or skipped (77: its last line is the reason).
check() {
    local name="$who: $1" begin=$SECONDS status log
    shift
    number=$((number + 1))
    log=$out/$(printf %02d $number)-$(echo "$name" | tr -c 'A-Za-z0-9.\n' '-').log
    ("$@") >"$log" 2>&1 </dev/null
    status=$?
    case $status in
        0) echo "ok $name ($((SECONDS - begin)) s)" ;;
        77) echo "skipped $name: $(tail -n 1 "$log" | sed 's/^skipped: //')" ;;
        *)
            echo "FAILED $name (status $status, $((SECONDS - begin)) s)"
            tail -n 15 "$log" | cut -c 1-400 | sed 's/^/    /'
            ;;
    esac
}

fail() {
    echo "FAILED: $*"
    exit 1
}

# wait_for SECONDS COMMAND...: until it succeeds.
wait_for() {
    local left=$(($1 * 10))
    shift
    until "$@"; do
        left=$((left - 1))
        [ $left -gt 0 ] || return 1
        sleep 0.1
    done
}

# mpi RANKS PROGRAM...: Open MPI, as who says.
mpi() {
    # shellcheck disable=SC2016 # the inner shell's
    as env MPI_LIMIT_S="${MPI_LIMIT_S:-300}" bash -c '. "$0/test/support/mpi.sh" && mpi "$@"' "$SOURCE" "$@"
}

# How often the device has registered memory of a process, since the guest has started.
count_registrations() {
    echo 'p:lab/registered rxe_reg_user_mr' >>$tracing/kprobe_events && echo 1 >$tracing/events/lab/enable
}
registrations() {
    awk '$1 == "registered" { print $2 }' $tracing/kprobe_profile
}

# numbers FILE KEY: the sum of that number over regcache's statistics lines.
numbers() {
    grep -a -o "\"$2\": [0-9]*" "$1" | awk '{ sum += $2 } END { print sum + 0 }'
}

start_service() {
    mkdir -p /run/regcached
    "$BUILD/regcached" >"$out/regcached.log" 2>&1 &
    service=$!
    wait_for 20 test -S /run/regcached/socket
}
end_service() {
    kill "$service" && wait "$service"
}
