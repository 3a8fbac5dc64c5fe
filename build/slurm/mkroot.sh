#!/usr/bin/env bash
# Makes the directory that the nodes of the test cluster share as their file system, and
# prints its path. It is kept in build/.cache/slurm under the hash of what it is made of.
# Needs root.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cache=$here/../.cache/slurm
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
# The images are those of whoever called sudo.
as_caller=()
[ -z "${SUDO_UID:-}" ] || as_caller=(sudo --preserve-env=http_proxy,https_proxy,no_proxy -u "#$SUDO_UID")
tar=$("${as_caller[@]}" "$here/../ci/images.sh" --filesystem slurm)
root=$cache/root-$(cat "$0" - <<<"$tar" | sha256sum | cut -c1-12)
if [ ! -d "$root" ]; then
    began=$SECONDS
    rm -rf "$cache"/root-*
    mkdir "$root.part"
    tar -C "$root.part" --numeric-owner -xf "$tar"
    # Nobody has a range of further user ids, as where an administrator has allowed none.
    for user in ada:1500 ben:1501; do
        chroot "$root.part" useradd -M -d "/home/${user%:*}" -s /bin/bash -u "${user#*:}" "${user%:*}"
    done
    : >"$root.part/etc/subuid"
    : >"$root.part/etc/subgid"
    printf 'MaxStartups 100\nUseDNS no\n' >"$root.part/etc/ssh/sshd_config.d/slipway.conf"
    # One key pair for every cluster: whoever logs in from outside.
    chroot "$root.part" ssh-keygen -q -t ed25519 -N '' -f /etc/slurm/login -C slipway
    mkdir -p "$root.part/var/spool/slurmctld" "$root.part/var/spool/slurmd" "$root.part/var/log/slurm"
    chroot "$root.part" chown slurm: /var/spool/slurmctld /var/log/slurm
    # The server that slurmdbd stores in runs as its user; its files are there already.
    chroot "$root.part" mariadb-install-db --force --user=slurm --datadir=/var/lib/mysql --skip-test-db \
        --innodb-log-file-size=8M >"$cache/mariadb.log" 2>&1 || { cat "$cache/mariadb.log" >&2; exit 1; }
    mv "$root.part" "$root"
    echo "mkroot.sh: unpacked in $((SECONDS - began)) s" >&2
fi
echo "$root"
