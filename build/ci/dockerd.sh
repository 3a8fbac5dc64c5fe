#!/usr/bin/env bash
# Runs a Docker daemon of the project's own for tests, beside any other.
#
#   build/ci/dockerd.sh start    installs what is missing, starts it, prints DOCKER_HOST=…
#   build/ci/dockerd.sh stop     stops it by pid and removes everything but its images
#   build/ci/dockerd.sh status   prints DOCKER_HOST=… and exits 0 if it answers
#   build/ci/dockerd.sh host     prints its address, running or not
#
# It shares nothing with another daemon: own data and exec roots, pid file,
# socket, containerd and bridge, and all it does to the machine's packet filter
# is one rule while it runs, which lets its containers reach each other where
# another Docker has forbidden that. They reach this machine too, and nothing else.
#
# SLIPWAY_DOCKERD names another state directory, so that a test may have a second
# daemon to break, and SLIPWAY_DOCKERD_SIZE gives that one a disk of its own, of so
# much memory, which is easily full. With SLIPWAY_DOCKERD_FILTER=on it rules the packet
# filter as a Docker of people does, which is for a network namespace of its own.
# SLIPWAY_DOCKERD_BIN is a directory with other programs to take,
# SLIPWAY_DOCKERD_CONFIG a daemon.json.
set -euo pipefail

if [ "$(id -u)" -ne 0 ]; then
    exec sudo --preserve-env=SLIPWAY_DOCKERD,SLIPWAY_DOCKERD_SIZE,SLIPWAY_DOCKERD_FILTER,SLIPWAY_DOCKERD_BIN,SLIPWAY_DOCKERD_CONFIG,http_proxy,https_proxy,no_proxy "$0" "$@"
fi

repo=$(cd "$(dirname "$0")/../.." && pwd)
state=${SLIPWAY_DOCKERD:-$repo/build/.cache/dockerd}
key=$(printf %s "$state" | sha256sum | cut -c1-8)
# Sockets have at most 108 bytes of path, so everything that holds one is in /run.
run=/run/slipway-$key
socket=$run/docker.sock
pidfile=$run/docker.pid
# Its data are in the state directory. It sees them here, outside the project: of files in
# the project, Go notes that a test looked at them, and runs it again once they changed.
# What is mounted has a directory above the data, since it is looked at as well.
seen=$run/state
data=$seen/data
bridge=slip$key
log=$state/dockerd.log
export PATH=${SLIPWAY_DOCKERD_BIN:+$SLIPWAY_DOCKERD_BIN:}$PATH:/usr/sbin:/sbin

fail() { echo "dockerd.sh: $*" >&2; exit 1; }

# answers succeeds when the daemon on our socket answers.
answers() { [ -S "$socket" ] && curl -sf --max-time 5 --unix-socket "$socket" http://docker/_ping >/dev/null 2>&1; }

# owner prints the pid of our daemon, if it lives.
owner() {
    local pid
    pid=$(cat "$pidfile" 2>/dev/null) || return 1
    [ -n "$pid" ] && grep -qz -- "$run/exec" "/proc/$pid/cmdline" 2>/dev/null && echo "$pid"
}

install_missing() {
    local missing=()
    command -v dockerd >/dev/null || missing+=(docker.io)
    command -v docker >/dev/null || missing+=(docker.io)
    command -v iptables >/dev/null || missing+=(iptables)
    command -v runc >/dev/null || missing+=(runc)
    command -v ip >/dev/null || missing+=(iproute2)
    command -v curl >/dev/null || missing+=(curl)
    [ ${#missing[@]} -eq 0 ] && return
    command -v apt-get >/dev/null || fail "needs ${missing[*]}; install them with your package manager"
    echo "dockerd.sh: installing ${missing[*]}" >&2
    # The packages start services of their own, which nobody asked for here.
    local policy=/usr/sbin/policy-rc.d made=
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
        made=yes
    fi
    local result=0
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >&2 || result=$?
    [ -z "$made" ] || rm -f "$policy"
    [ "$result" -eq 0 ] || fail "could not install ${missing[*]}"
    # Debian splits the command from the daemon in newer releases.
    command -v docker >/dev/null || apt-get install -y -qq --no-install-recommends docker-cli >&2
}

# mount_cgroups gives the machine a cgroup hierarchy where it has none yet.
mount_cgroups() {
    mountpoint -q /sys/fs/cgroup && return
    mount -t cgroup2 cgroup2 /sys/fs/cgroup || fail "no cgroups at /sys/fs/cgroup, and they cannot be mounted here"
}

# free_subnet prints the first of our /24 networks that no route here uses.
free_subnet() {
    local n routes
    routes=$(ip -4 route)
    for n in $(seq 0 63); do
        grep -qF "10.213.$n." <<<"$routes" || { echo "10.213.$n"; return; }
    done
    fail "no free network among 10.213.0.0/18"
}

make_bridge() {
    ip link show "$bridge" >/dev/null 2>&1 && return
    local net
    net=$(free_subnet)
    ip link add "$bridge" type bridge
    # Only IPv4 is used; an address that comes with the first container would be news to every browser here.
    echo 1 >"/proc/sys/net/ipv6/conf/$bridge/disable_ipv6" 2>/dev/null || true
    ip addr add "$net.1/24" dev "$bridge"
    ip link set "$bridge" up
}

# neighbours are packets between our containers, of every private daemon.
neighbours=(FORWARD -s 10.213.0.0/16 -d 10.213.0.0/16 -j ACCEPT)

# admit lets our containers reach each other, once for each daemon that runs:
# the rule of one must not go with another.
admit() {
    iptables -w 10 -I "${neighbours[@]}" 2>/dev/null && touch "$run/admitted" && return
    echo "dockerd.sh: the packet filter takes no rule; containers reach each other only where it does not forward by choice" >&2
}

start() {
    if answers; then
        echo "DOCKER_HOST=unix://$socket"
        return
    fi
    install_missing
    clean
    mount_cgroups
    mkdir -p "$state/data" "$seen" "$run/exec"
    chmod 755 "$run"
    if [ -n "${SLIPWAY_DOCKERD_SIZE:-}" ]; then
        mount -t tmpfs -o "size=$SLIPWAY_DOCKERD_SIZE" tmpfs "$seen"
    else
        mount --bind "$state" "$seen"
        mount --make-private "$seen"
    fi
    make_bridge
    local filter=(--iptables=true --ip-masq=true --ip-forward=true)
    [ "${SLIPWAY_DOCKERD_FILTER:-}" = on ] || { admit; filter=(--iptables=false --ip-masq=false --ip-forward=false); }
    setsid nohup dockerd ${SLIPWAY_DOCKERD_CONFIG:+--config-file "$SLIPWAY_DOCKERD_CONFIG"} \
        --data-root "$data" --exec-root "$run/exec" --pidfile "$pidfile" \
        --host "unix://$socket" --group "${SUDO_GID:-0}" \
        --bridge "$bridge" --default-address-pool base=10.213.64.0/18,size=24 \
        "${filter[@]}" --userland-proxy=false \
        --shutdown-timeout 5 >"$log" 2>&1 </dev/null 9>&- &
    local pid=$! waited
    for waited in $(seq 150); do
        answers && { echo "DOCKER_HOST=unix://$socket"; return; }
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.2
    done
    tail -n 20 "$log" >&2
    stop
    fail "dockerd did not answer within 30 s; its log is $log"
}

# end ends a process and waits for it: first politely, after 20 s by force.
end() {
    local pid=$1 waited
    kill "$pid" 2>/dev/null || return 0
    for waited in $(seq 200); do
        kill -0 "$pid" 2>/dev/null || return 0
        sleep 0.1
    done
    kill -9 "$pid" 2>/dev/null || true
}

# ours prints the pids of containerd and its shims that a killed daemon left.
ours() {
    local dir
    for dir in /proc/[0-9]*; do
        case $(readlink "$dir/exe" 2>/dev/null) in
        */containerd | */containerd-shim-runc-v2 | */dockerd) ;;
        *) continue ;;
        esac
        tr '\0' ' ' <"$dir/cmdline" 2>/dev/null | grep -qF "$run/exec" && echo "${dir#/proc/}"
    done
    return 0
}

# orphans prints the pids of containers' processes that outlived their shim.
orphans() {
    local ids
    ids=$(ls "$data/containers" "$state/data/containers" 2>/dev/null | grep -xE '[0-9a-f]{64}' | sort -u | paste -sd '|')
    [ -z "$ids" ] || grep -lE "$ids" /proc/[0-9]*/cgroup 2>/dev/null | cut -d / -f 3 || true
}

# clean removes what a stopped or killed daemon leaves behind.
clean() {
    local pid at
    for pid in $(ours); do end "$pid"; done
    for pid in $(orphans); do kill -9 "$pid" 2>/dev/null || true; done
    awk -v a="$run/" 'index($2, a) == 1 {print $2}' /proc/mounts | sort -r |
        while read -r at; do umount -l "$at" || true; done
    ! mountpoint -q "$seen" || fail "$seen is still mounted"
    ip link del "$bridge" 2>/dev/null || true
    [ ! -e "$run/admitted" ] || iptables -w 10 -D "${neighbours[@]}" 2>/dev/null || true
    rm -rf "$run"
}

stop() {
    local pid
    if pid=$(owner); then end "$pid"; fi
    clean
}

mkdir -p "$state"
exec 9>"$state/lock"
flock 9
case ${1:-} in
start) start ;;
stop) stop ;;
status)
    answers || { echo "not running"; exit 1; }
    echo "DOCKER_HOST=unix://$socket"
    ;;
host) echo "unix://$socket" ;;
*)
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
