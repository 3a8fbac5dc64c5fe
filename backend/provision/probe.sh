# Says what a machine is and has, one fact a line. It needs a POSIX shell and
# the programs that every Unix has; whatever else is missing leaves its fact out.
# $1: folder of the agent's files, or nothing for the usual one
# $2: DOCKER_HOST, or nothing for what this account has
set -u
LC_ALL=C; export LC_ALL
say() { # one fact: printable, on one line, of bounded length
	v=$(printf '%s' "$2" | tr '\n\t' '  ' | tr -cd '[:print:]' | cut -c 1-"${3:-400}")
	printf '%s=%s\n' "$1" "$v"
}
limited() { # runs a command for at most some seconds where timeout(1) is there
	t=$1; shift
	if command -v timeout >/dev/null 2>&1; then timeout "$t" "$@"; else "$@"; fi
}
echo 'slipway-probe 1'
say os "$(uname -s)"
say arch "$(uname -m)"
say kernel "$(uname -r)"
say host "$(uname -n)"
say uid "$(id -u)"
say user "$(id -un 2>/dev/null || id -u)"
say now "$(date +%s)"
say home "${HOME:-}"

dir=${1:-}
[ -n "$dir" ] || dir=${SLIPWAY_HOME:-}
if [ -z "$dir" ]; then
	case ${XDG_DATA_HOME:-} in /*) dir=$XDG_DATA_HOME/slipway ;; *) dir=${HOME:-}/.local/share/slipway ;; esac
fi
case $dir in *[!\ -~]*) dir= ;; esac # it could not be said, so nothing is
say dir "$dir" 4000
near=$dir
while [ ! -d "$near" ] && [ "$near" != / ] && [ "$near" != . ]; do near=$(dirname -- "$near"); done
say disk "$(df -Pk -- "$near" 2>/dev/null | awk 'NR == 2 { print $2, $4 }')"
f=$near/.slipway-probe.$$
if (umask 077; printf '#!/bin/sh\nexit 0\n' >"$f") 2>/dev/null && chmod 700 "$f" 2>/dev/null; then
	if "$f" >/dev/null 2>&1; then say folder ok; else say folder noexec; fi
else
	say folder readonly
fi
rm -f -- "$f" 2>/dev/null
command -v gzip >/dev/null 2>&1 && say gzip yes

runtime=${XDG_RUNTIME_DIR:-/run/user/$(id -u)}
docker=${2:-}
[ -n "$docker" ] || docker=${DOCKER_HOST:-}
if [ -z "$docker" ]; then
	docker=unix:///var/run/docker.sock
	[ -S /var/run/docker.sock ] || [ ! -S "$runtime/docker.sock" ] || docker=unix://$runtime/docker.sock
fi
say docker "$docker"
case $docker in unix://*)
	s=${docker#unix://}
	if [ ! -S "$s" ]; then
		if command -v dockerd >/dev/null 2>&1 || [ -x /usr/sbin/dockerd ]; then say socket stopped; else say socket missing; fi
	elif [ -w "$s" ]; then say socket open; else say socket forbidden; fi ;;
*) say socket remote ;;
esac
if command -v docker >/dev/null 2>&1; then
	DOCKER_HOST=$docker; export DOCKER_HOST
	say engine "$(limited 10 docker info --format '{{.ServerVersion}}|{{.LiveRestoreEnabled}}|{{.CgroupVersion}}|{{range $k, $v := .Runtimes}}{{$k}},{{end}}' 2>/dev/null)"
elif command -v curl >/dev/null 2>&1 && [ "${docker#unix://}" != "$docker" ]; then
	say engine "$(limited 10 curl -s -m 10 --unix-socket "${docker#unix://}" http://docker/version 2>/dev/null | sed -n 's/.*"Version":"\([^"]*\)","ApiVersion".*/\1/p')"
fi
if command -v sbatch >/dev/null 2>&1; then say slurm "$(limited 10 sbatch --version 2>/dev/null | sed -n 's/^slurm[^ ]* //p' | head -n 1)"; fi
if [ -f /sys/fs/cgroup/cgroup.controllers ]; then say cgroup 2; elif [ -d /sys/fs/cgroup/memory ]; then say cgroup 1; fi

[ -r /proc/driver/nvidia/version ] && say nvidia "$(sed -n 's/.*Kernel Module *\(for [^ ]* *\)\{0,1\}\([0-9][0-9.]*\).*/\2/p' /proc/driver/nvidia/version | head -n 1)"
command -v nvidia-ctk >/dev/null 2>&1 && say toolkit "$(nvidia-ctk --version 2>/dev/null | sed -n 's/.*version \([0-9][0-9.]*\).*/\1/p' | head -n 1)"
for i in /proc/driver/nvidia/gpus/*/information; do
	[ -r "$i" ] && say gpu "$(sed -n 's/^Model:[[:space:]]*//p' "$i")"
done
for i in /sys/class/drm/card*/device/vendor; do
	[ -r "$i" ] || continue
	case $(cat "$i") in
	0x1002) say gpu "AMD $(cat "${i%vendor}device" 2>/dev/null)" ;;
	0x10de) [ -d /proc/driver/nvidia/gpus ] || say gpu 'NVIDIA without a driver' ;;
	esac
done

if command -v systemctl >/dev/null 2>&1; then
	XDG_RUNTIME_DIR=$runtime; export XDG_RUNTIME_DIR
	if limited 5 systemctl --user show-environment >/dev/null 2>&1; then say systemd yes; else say systemd no; fi
	say linger "$(limited 5 loginctl show-user "$(id -un)" --property=Linger 2>/dev/null | sed -n 's/^Linger=//p')"
	say killing "$(limited 5 busctl get-property org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager KillUserProcesses 2>/dev/null)"
fi

b=$dir/bin/slipway
if [ -x "$b" ]; then
	say installed "$(limited 10 "$b" agent --version 2>/dev/null)" 2000
	say running "$(SLIPWAY_HOME=$dir limited 10 "$b" agent status -o json 2>/dev/null)" 8000
fi
for i in "$dir"/bin/slipway-*; do [ -x "$i" ] && say held "${i##*/}"; done
echo 'slipway-probe end'
