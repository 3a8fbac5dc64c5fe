#!/usr/bin/env bash
# Runs a Slurm cluster of the project's own for tests: a login node, which is the
# controller too, and two nodes with two made-up GPUs each. Needs root.
#
#   build/slurm/rig.sh up [accounting]      makes what is missing and starts it
#   build/slurm/rig.sh down                 ends it and removes everything but its file system
#   build/slurm/rig.sh down NODE            ends a node as a power failure does
#   build/slurm/rig.sh reboot NODE          starts a node, and ends it first if it is there
#   build/slurm/rig.sh exec NODE COMMAND…   runs a command as the user ada
#   build/slurm/rig.sh as USER NODE COMMAND…   as ada, ben or root
#   build/slurm/rig.sh copy FILE NODE PATH  copies a file of this machine to a node, as ada
#   build/slurm/rig.sh kill NODE DAEMON [SIGNAL]   sends KILL, or that signal, to a daemon
#   build/slurm/rig.sh start NODE DAEMON    starts it again
#   build/slurm/rig.sh mend                 starts again what was ended, until all nodes take jobs
#   build/slurm/rig.sh accounting on|off    starts or stops slurmdbd and its database
#   build/slurm/rig.sh ssh                  prints the directory with address, id_ed25519, known_hosts
#   build/slurm/rig.sh status               exits 0 if the controller answers
#   build/slurm/rig.sh remove               ends it and removes its file system as well
#
# Nodes are login, n1 and n2; daemons are munged, sshd, slurmctld, slurmd, slurmdbd
# and mariadbd. Each node has namespaces of its own and joins a network that only they
# are in; all of their processes are in one control group of this machine. A port of
# this machine's loopback leads to the login node's sshd. The users have their home,
# which all nodes share, as long as the cluster is up. SLIPWAY_SLURM names another
# state directory, so that a test may have a second cluster to break.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cache=$(mkdir -p "$here/../.cache/slurm" && cd "$here/../.cache/slurm" && pwd)
if [ "$(id -u)" -ne 0 ]; then
    exec sudo --preserve-env=SLIPWAY_SLURM,http_proxy,https_proxy,no_proxy "$0" "$@"
fi

state=${SLIPWAY_SLURM:-$cache/state}
group=slipway-slurm-$(printf %s "$state" | sha256sum | cut -c1-8)
declare -A address=([login]=10.214.0.1 [n1]=10.214.0.11 [n2]=10.214.0.12)
nodes=(login n1 n2)
export PATH=$PATH:/usr/sbin:/sbin

fail() { echo "rig.sh: $*" >&2; exit 1; }

# hierarchies prints where this machine has the control groups that Slurm uses: several
# places in version 1, one in version 2.
hierarchies() {
    awk '$2 == "/sys/fs/cgroup" && $3 == "cgroup2" ||
        $3 == "cgroup" && "," $4 "," ~ /,(cpuset|cpuacct|memory|devices|freezer),/ {print $2}' /proc/mounts | sort -u
}

# join puts this process into the control group of a node. In version 2 processes are
# only in groups that have no groups in them.
join() {
    local at
    for at in $trees; do
        if [ -d "$at/$group/$1/init.scope" ]; then at=$at/$group/$1/init.scope; else at=$at/$group/$1; fi
        echo "$BASHPID" >"$at/cgroup.procs"
    done
}

# make_group makes the control group of a node. In version 1 a set of processors begins empty.
make_group() {
    local at above to file
    for at in $trees; do
        above=$at
        for to in "$at/$group" "$at/$group/$1"; do
            controlled "$above"
            mkdir -p "$to"
            for file in cpuset.cpus cpuset.mems; do
                [ "$version" = v2 ] || [ ! -e "$to/$file" ] || cat "$above/$file" >"$to/$file"
            done
            above=$to
        done
    done
}

# controlled has the groups in a group limited and counted, which version 2 does on demand.
# Slurm does not understand the last word of what a group offers, and needs all but pids.
controlled() {
    [ ! -e "$1/cgroup.subtree_control" ] || echo "+cpuset +cpu +memory +pids" >"$1/cgroup.subtree_control"
}

# settle makes room for Slurm's groups in that of a node, as systemd has it where it runs.
settle() {
    local at=$trees/$group/$1 one
    [ "$version" = v2 ] || return 0
    mkdir "$at/init.scope" "$at/system.slice"
    while read -r one <"$at/cgroup.procs"; do echo "$one" >"$at/init.scope/cgroup.procs" || true; done
    controlled "$at"
    controlled "$at/system.slice"
}

# pid prints the process that holds a node, as this machine counts.
pid() { [ -s "$state/$1/pid" ] && cat "$state/$1/pid"; }

# enter becomes a command as root on a node, which ends with this process.
enter() {
    local node=$1 holder
    shift
    [ -n "${address[$node]:-}" ] || fail "no node $node; there are ${nodes[*]}"
    holder=$(pid "$node") || fail "$node is not up"
    join "$node"
    exec nsenter -t "$holder" -m -n -u -p -i -C -- \
        env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 "$@"
}

# as becomes a command as a user.
as() {
    local user=$1 node=$2
    shift 2
    [ "$user" != root ] || enter "$node" setpriv --pdeathsig KILL "$@"
    enter "$node" env -C "/home/$user" HOME="/home/$user" USER="$user" LOGNAME="$user" SHELL=/bin/bash \
        PATH=/usr/local/bin:/usr/bin:/bin setpriv --reuid "$user" --regid "$user" --init-groups --pdeathsig KILL "$@"
}

# on runs a command as root on a node.
on() { (enter "$@" </dev/null 9>&-); }

# until_true repeats a command until it succeeds, for at most so many seconds.
until_true() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$deadline" ] || return 1
        sleep 0.05
    done
}

daemon() {
    local node=$1
    case $2 in
    munged) on "$node" setpriv --reuid munge --regid munge --init-groups munged ;;
    sshd | slurmctld | slurmd | slurmdbd) on "$node" "/usr/sbin/$2" ;; # sshd insists on its path
    mariadbd)
        on "$node" bash -c 'setsid mariadbd --user=slurm --skip-networking --skip-grant-tables \
            --socket=/run/mysqld/mysqld.sock --innodb-buffer-pool-size=32M --innodb-log-file-size=8M \
            --innodb-flush-log-at-trx-commit=0 >/var/log/mariadbd.log 2>&1 &'
        until_true 20 on "$node" test -S /run/mysqld/mysqld.sock || fail "mariadbd does not answer"
        ;;
    *) fail "no daemon $2" ;;
    esac
}

# space starts the process that holds a node's namespaces, and waits for it.
space() {
    local node=$1
    rm -rf "$state/$node/tmp" "$state/$node/pid" "$state/$node/work"
    mkdir -p "$state/$node"/{upper,work,root,tmp}
    chmod 1777 "$state/$node/tmp"
    make_group "$node"
    (
        join "$node"
        exec setsid unshare -m -n -u -p -i -C -f --kill-child "$here/node.sh" "$node" "$root" "$state" \
            </dev/null >"$state/$node/log" 2>&1 9>&-
    ) &
    until_true 20 test -s "$state/$node/pid" || { cat "$state/$node/log" >&2; fail "$node does not start"; }
    settle "$node"
}

# wire connects a node to the network.
wire() {
    local holder switch
    holder=$(pid "$1")
    switch=$(pid switch)
    nsenter -t "$switch" -n ip -batch - <<<"link add $1 type veth peer name eth0 netns $holder
link set $1 master nodes up"
    nsenter -t "$holder" -n ip -batch - <<<"link set lo up
addr add ${address[$1]}/24 dev eth0
link set eth0 up"
}

# boot brings a node up, with what runs on it.
boot() {
    space "$1"
    wire "$1"
    daemon "$1" munged
    daemon "$1" sshd
    if [ "$1" = login ]; then
        gate
        [ ! -e "$state/accounting" ] || books
        daemon login slurmctld
    else
        daemon "$1" slurmd
    fi
}

# gate lets this machine's loopback lead to the login node's sshd: one process takes
# connections here, another has them connected there.
gate() {
    local holder port
    holder=$(pid login)
    port=$(cut -d : -f 2 "$state/ssh/address")
    (
        join login
        nsenter -t "$holder" -m -n -p -C setsid socat UNIX-LISTEN:/run/gate,fork,mode=600 TCP:127.0.0.1:22,nodelay &
        nsenter -t "$holder" -m -p -C setsid socat "TCP-LISTEN:$port,bind=127.0.0.1,reuseaddr,nodelay,fork" \
            UNIX-CONNECT:/run/gate,retry=50,interval=0.1 &
    ) </dev/null >"$state/login/gate.log" 2>&1 9>&-
}

# keys writes what a person who logs in from outside has.
keys() {
    local port=23000
    mkdir "$state/ssh"
    while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
    echo "127.0.0.1:$port" >"$state/ssh/address"
    install -m 600 "$root/etc/slurm/login" "$state/ssh/id_ed25519"
    echo "[127.0.0.1]:$port $(cut -d ' ' -f 1,2 "$root/etc/ssh/ssh_host_ed25519_key.pub")" >"$state/ssh/known_hosts"
    chown -R "${SUDO_UID:-0}" "$state/ssh"
}

homes() {
    local user
    for user in ada:1500 ben:1501; do
        install -d -m 711 -o "${user#*:}" -g "${user#*:}" "$state/home/${user%:*}"
    done
    install -d -m 700 -o 1500 -g 1500 "$state/home/ada/.ssh"
    install -m 600 -o 1500 -g 1500 "$root/etc/slurm/login.pub" "$state/home/ada/.ssh/authorized_keys"
}

# configure writes what the nodes have in /etc/slurm.
configure() {
    local how=off
    [ ! -e "$state/accounting" ] || how=on
    cp "$here"/etc/* "$state/etc"
    cp "$here/etc/accounting.$how" "$state/etc/accounting.conf"
    cp "$here/etc/cgroup.$version" "$state/etc/cgroup.conf"
    chown "$(stat -c %u "$root/var/log/slurm")" "$state/etc/slurmdbd.conf"
    chmod 600 "$state/etc/slurmdbd.conf"
}

# books starts what accounting needs.
books() {
    daemon login mariadbd
    daemon login slurmdbd
    until_true 30 on login sacctmgr -n list cluster ||
        fail "slurmdbd does not answer: $(on login cat /var/log/slurm/slurmdbd.log)"
    on login sacctmgr -i add cluster harbor >/dev/null || true # it is there after the first time
}

# accounts makes those that are missing: limits of GPUs only once the controller has named them.
accounts() {
    [ -z "$(on login sacctmgr -nP list user ada)" ] || return 0
    (enter login sacctmgr -i <"$here/etc/accounts.sacctmgr") >"$state/accounts.log" 2>&1 ||
        fail "the accounts cannot be made: $(cat "$state/accounts.log")"
}

# usable succeeds when both nodes take jobs, or would if they had none.
usable() { [ "$(on login sinfo -h -N -p gpu -o %T | grep -cxE 'idle|mixed|allocated|completing|planned')" = 2 ]; }

# ready waits until both nodes take jobs.
ready() {
    until_true 40 usable || fail "the nodes take no jobs: $(on login sinfo -h -N -o '%N %T %E' 2>&1)"
    [ ! -e "$state/accounting" ] || accounts
}

# mend starts what a test has ended.
mend() {
    local node one daemons
    for node in "${nodes[@]}"; do
        if ! kill -0 "$(pid "$node")" 2>/dev/null; then
            boot "$node"
            continue
        fi
        daemons=(munged sshd slurmd)
        if [ "$node" = login ]; then daemons=(munged sshd slurmctld); fi
        for one in "${daemons[@]}"; do
            on "$node" pkill -CONT -x "$one" || daemon "$node" "$one"
        done
    done
    until_true 40 answers || fail "the controller does not answer"
    for node in n1 n2; do
        case $(on login sinfo -h -p gpu -n "$node" -o %T) in
        drain* | down) on login scontrol update "nodename=$node" state=resume ;;
        esac
    done
    ready
}

up() {
    local node
    if answers; then
        [ -z "${1:-}" ] || accounting on
        return
    fi
    clean
    root=$("$here/mkroot.sh" 9>&-)
    mkdir -p "$state"/{etc,home,switch}
    [ -z "${1:-}" ] || touch "$state/accounting"
    echo "$root" >"$state/file-system"
    configure
    homes
    keys
    make_group switch
    (join switch && exec setsid unshare -n sleep infinity </dev/null >/dev/null 2>&1 9>&-) &
    echo $! >"$state/switch/pid"
    until_true 5 [ ! "/proc/$!/ns/net" -ef /proc/self/ns/net ]
    nsenter -t "$!" -n ip -batch - <<<"link add nodes type bridge
link set nodes up"
    for node in "${nodes[@]}"; do boot "$node" & booting+=($!); done
    for node in "${booting[@]}"; do wait "$node"; done
    ready
}

# accounting switches it on or off, which the controller learns at its start.
accounting() {
    case $1 in
    on)
        [ ! -e "$state/accounting" ] || return 0
        touch "$state/accounting"
        configure
        books
        ;;
    off)
        [ -e "$state/accounting" ] || return 0
        rm "$state/accounting"
        configure
        ;;
    *) fail "accounting is on or off" ;;
    esac
    stop login slurmctld
    if [ "$1" = off ]; then
        stop login slurmdbd
        stop login mariadbd
    fi
    daemon login slurmctld
    ready
}

# stop ends a daemon and waits for its end.
stop() {
    on "$1" pkill -TERM -x "$2" || return 0
    until_true 20 absent "$1" "$2" || fail "$2 does not end"
}

absent() { ! on "$1" pgrep -x "$2"; }

# ours prints the processes in our control groups.
ours() {
    local at
    for at in $trees; do
        find "$at/$group${1:+/$1}" -name cgroup.procs -exec cat {} + 2>/dev/null || true
    done | sort -un
}

# end ends all processes of the cluster, or of one of its nodes, and removes their control groups.
end() {
    local at left deadline=$((SECONDS + 10))
    while left=$(ours "$@"); [ -n "$left" ]; do
        [ "$SECONDS" -lt "$deadline" ] || fail "processes do not end: $(tr '\n' ' ' <<<"$left")"
        kill -9 $left 2>/dev/null || true
        sleep 0.02
    done
    for at in $trees; do
        [ ! -d "$at/$group${1:+/$1}" ] || find "$at/$group${1:+/$1}" -depth -type d -exec rmdir {} +
    done
}

clean() {
    end
    rm -rf "$state"
}

answers() { pid login >/dev/null && on login scontrol ping >/dev/null 2>&1; }

trees=$(hierarchies)
[ -n "$trees" ] || fail "this machine has no control groups at /sys/fs/cgroup"
version=v1
[ ! -e "$trees/cgroup.controllers" ] || version=v2
booting=()
root=$(cat "$state/file-system" 2>/dev/null || true)
case ${1:-} in
up | down | reboot | mend | accounting | remove)
    exec 9>"$cache/lock"
    flock 9
    ;;
esac
case ${1:-} in
up) up "${2:-}" ;;
down)
    if [ -n "${2:-}" ]; then
        end "$2"
        rm -f "$state/$2/pid"
    else
        clean
    fi
    ;;
reboot)
    end "$2"
    boot "$2"
    ;;
exec) shift; as ada "$@" ;;
as) shift; as "$@" ;;
copy) as ada "$3" sh -c 'cat >"$0" && chmod "$1" "$0"' "$4" "$(stat -c %a "$2")" <"$2" ;;
kill) enter "$2" pkill "-${4:-KILL}" -x "$3" ;;
start) daemon "$2" "$3" ;;
mend) mend ;;
accounting) accounting "$2" ;;
ssh) echo "$state/ssh" ;;
status) answers || { echo "not running"; exit 1; } ;;
remove)
    clean
    rm -rf "$cache"
    ;;
*)
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
