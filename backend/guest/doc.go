// Package guest is the small static program inside every container.
//
// # Life
//
// The engine starts /.slipway/guest init as process 1 of the container, as root, with its config in
// /.slipway/config.json. init forks a worker, reaps orphans, forwards signals and exits with the worker's code. The
// worker creates the work user, the home and the runtime files, connects to the agent's socket
// /.slipway/link/agent.sock (again after every loss), runs terminals and services, and starts a batch command when an
// agent has read "ready" from an events stream, or after 30 s. It exits with the code of the batch command, or on
// SIGTERM, with 0 if there is none. Without a shell, a batch command ends with 127 and session_start_no-shell.
//
// The guest needs only the capabilities CHOWN, DAC_OVERRIDE, FOWNER, KILL, SETGID, SETPCAP and SETUID. In an
// administrator session the person is the image's root and keeps all of them except SETPCAP, and FSETID. Such a
// container has no mounts of the machine.
//
// On a compute node of Slurm, package node starts it in a user namespace with one id, the person's. There it has the
// same capabilities, over the person's own files only, and everything of root below is the person's.
//
// # What it touches as root
//
// The image is not trusted, and folders of the machine are mounted in it. If root followed a link of the image, it
// could lead into them. So the guest accesses files as root in one of three ways only, which build/archtest checks:
//
// Through a tree, which follows no link, compares the mount of each step, and reads only plain files up to a size:
//
//	/.slipway/config.json         read once. A link or a second mount: the guest ends with 123
//	/.slipway/link                open from the start, to dial the socket in it. As above
//	/.slipway/spool               open from the start, root's with mode 0700, for terminals' output. As above
//	/home, /home/work             created, open from the start, the work user's except for mounts in it. As above
//	/dev, /dev/null, /dev/pts     open from the start, and the kernel's; terminals are opened in it. As above
//	/etc                          created. A link or a mount: session_start_no-user, and the session continues
//	/etc/passwd, group, shadow    read and replaced; up to 1 MiB each. As above
//	/etc/skel and its files       read; up to 100 files of 1 MiB. Anything else is skipped
//	/home/work/.gitconfig         created in a new home, if the launch names the author of commits
//	/var/lib/slipway/python       created, with sitecustomize.py. A link or a mount: session_start_uncooperative
//	/usr/local/bin                created, with a link named ssh. A link or a mount: session_start_no-ssh
//	/opt/slipway                  created, the work user's with its directories, for installed packages. A link or a
//	                              mount: session_start_no-home
//	/etc/profile.d                if it exists, with slipway.sh. Otherwise login shells lack that directory in PATH
//
// In /proc and /sys, which are the kernel's, up to a size: /proc/self/exe, fd, fdinfo, mountinfo and oom_score_adj,
// /proc/PID/stat and cmdline, /proc/net, /proc/sys/net, /sys/fs/cgroup.
//
// By stat without opening: the pins of mounts, and the programs that a shell would find, which run as the work user.
//
// All of this, except terminals' output and the agent's socket, happens before anything of the image or the person
// runs. ~/.ssh, the files of the home, sftp and the ssh client belong to processes that have become the work user.
// Names of other machines are resolved by Go's resolver, from files of /etc that Docker mounts.
//
// Everything that runs for the person starts through guest spawn, which drops every capability (guest spawn-admin: all
// but the administrator's), becomes the work user and then executes the command. This includes guest files, which
// accesses files for the agent, guest sftp, and guest keep, which keeps the output of notebooks (package keeper). When
// memory runs out, the kernel kills such programs before the guest. [Guest] and the link do not depend on Linux, but on
// [Processes], which a simulated container implements too.
//
// # Cluster
//
// If its config has a cluster, the guest serves ssh on its own address in the session's private network: with the one
// key of the session, for shells and commands of the work user. It writes that key, the host key and the names of the
// other kernels to ~/.ssh, and is the ssh client if the image has none.
//
// # SSH
//
// The agent forwards the person's ssh connections over the link: shells, commands, sftp and ports, all as the work
// user. The server does not listen. Its host key is created when first needed and stays in memory. If a caller
// disconnects, its program is hung up; what an ended command left in the background stays.
//
// # Link
//
// The link is one [tunnel.Mux]. The agent opens streams, and each begins with one request: a big-endian uint32 length
// and that much JSON, {"op": …}, answered in the same framing by {"ok": …} or {"error": {code, message, hint}}. Then:
//
//	hello            {version, pid, shells}: after it the link is in use
//	events           frames of JSON until the stream ends: {"ready"}, {"exit": code}, {"oom": count}, {"error"}
//	terminal.list    [session.Terminal]
//	terminal.open    session.TerminalRequest → session.Terminal
//	terminal.attach  session.AttachRequest → the stream speaks terminal's attach protocol
//	terminal.close   {id}
//	exec             session.ExecRequest → terminal's exec protocol
//	which            {names} → {name: path}: the programs that are installed
//	service.start    {id, argv, env, port, ready: path, last: path, timeout} → waits for it
//	service.stop     {id}
//	service.list     [{id, port, state, exitCode, error}]
//	listening        [port]: on the loopback, without ephemeral ports
//	activity         [{terminal, program, known}]: the foreground program of each terminal
//	notice           {text}: a line shown in every terminal
//	file             {op, …} → an answer. read: then the file in pieces, each a uint32 length and that many bytes, the
//	                 last of length 0, then a last answer. write: then pieces from the agent, then a last answer
//	ssh.host         {key}: the public host key of the ssh server
//	ssh              {key} → raw bytes to the ssh server, which admits that key
//	ssh.use          {last, input, program}: its use
//	dial             {port} → raw bytes to that port on the container's loopback
//	sockets          {count}: before the answer, up to so many sockets of the container's network, not connected, are
//	                 sent as SCM_RIGHTS. The agent connects them to ports on the loopback
package guest
