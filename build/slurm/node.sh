#!/usr/bin/env bash
# The first process of a node of the test cluster, in namespaces of its own: makes the
# node's root and then only reaps. rig.sh starts it as `node.sh NODE ROOT STATE`.
set -euo pipefail

name=$1 root=$2 state=$3
own=$state/$name
new=$own/root
# The number that this process has for the machine, whose /proc is still there.
read -r pid _ </proc/self/stat

mount --make-rprivate /
mount -t overlay -o "lowerdir=$root,upperdir=$own/upper,workdir=$own/work" overlay "$new"
mount -t proc proc "$new/proc"
mount -t sysfs sysfs "$new/sys"
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    mount -t cgroup2 cgroup2 "$new/sys/fs/cgroup"
else
    mount -t tmpfs -o mode=755 tmpfs "$new/sys/fs/cgroup"
    while IFS=: read -r _ together _; do
        for one in ${together//,/ }; do
            case $one in
            cpuset | cpuacct | memory | devices | freezer)
                mkdir "$new/sys/fs/cgroup/$one"
                mount -t cgroup -o "$together" cgroup "$new/sys/fs/cgroup/$one"
                ;;
            esac
        done
    done </proc/self/cgroup
fi

mount -t tmpfs -o mode=755 tmpfs "$new/dev"
mkdir "$new/dev/pts" "$new/dev/shm" "$new/dev/net"
device() { mknod -m 666 "$new/dev/$1" c "$2" "$3"; }
device null 1 3
device zero 1 5
device full 1 7
device random 1 8
device urandom 1 9
device tty 5 0
device net/tun 10 200
# The GPUs are consoles: a device that no program needs, since jobs are denied those of others.
if [ "$name" != login ]; then
    device fakegpu0 4 40
    device fakegpu1 4 41
fi
mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts "$new/dev/pts"
ln -s pts/ptmx "$new/dev/ptmx"
ln -s /proc/self/fd "$new/dev/fd"
for at in 0:stdin 1:stdout 2:stderr; do ln -s "fd/${at%:*}" "$new/dev/${at#*:}"; done
mount -t tmpfs -o mode=1777 tmpfs "$new/dev/shm"
mount -t tmpfs -o mode=755 tmpfs "$new/run"
mkdir "$new/run/lock" "$new/run/sshd"
install -d -o "$(stat -c %u "$root/etc/munge/munge.key")" "$new/run/munge"
install -d -o "$(stat -c %u "$root/var/log/slurm")" "$new/run/mysqld"
mount --bind "$own/tmp" "$new/tmp"
mount --bind "$state/home" "$new/home"
mount --bind "$state/etc" "$new/etc/slurm"
cp "$state/etc/hosts" "$new/etc/hosts"
hostname "$name"
echo "$name" >"$new/etc/hostname"
exec 3>"$own/pid"
mkdir -p "$new/old"
cd "$new"
pivot_root . old
umount -l /old
rmdir /old
echo "$pid" >&3
exec 3>&-
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin bash -c 'while :; do sleep 3600 & wait; done'
