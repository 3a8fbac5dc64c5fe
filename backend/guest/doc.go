// Package guest is the small static program inside every container, and the agent's client for it.
//
// # Life
//
// The engine starts /.slipway/guest init as process 1 of the container, as root, with its config in
// /.slipway/config.json. init forks a worker, reaps orphans, passes signals on and exits with the worker's code. The
// worker makes the work user, the home and the runtime files, connects to the agent's socket /.slipway/link/agent.sock
// (again and again while the agent is away), holds terminals and services, and runs the startup command of a batch
// session as soon as an agent has read "ready" from an events stream, or after 30 s without one. It exits when a batch
// command ends, with its code, or on SIGTERM, with 0 where there is no command. Without a shell to run it, a batch
// command ends with 127 and session_start_no-shell.
//
// The guest needs the capabilities CHOWN, DAC_OVERRIDE, FOWNER, KILL, SETGID, SETPCAP and SETUID, and nothing else.
//
// # What it touches as root
//
// The image is a stranger's work, and folders of the machine are mounted in it. A link of the image that is followed by
// root leads into them. So whatever the guest reaches as root it reaches in one of three ways, and build/archtest fails
// where it does otherwise:
//
// By a tree, which follows no link, compares the mount of each step, and reads only plain files up to a size:
//
//	/.slipway/config.json         read once. A link, a second mount: the guest ends with 123
//	/.slipway/link                held from the start; the socket in it is dialled again and again. As above
//	/.slipway/spool               held from the start, made root's with mode 0700; terminals' output. As above
//	/home, /home/work             made, held, given to the work user but for mounts in it. As above
//	/dev, /dev/null, /dev/pts     held from the start, and of the kernel; terminals are opened in it. As above
//	/etc                          made. A link or a mount: session_start_no-user, and the session goes on
//	/etc/passwd, group, shadow    read and replaced; up to 1 MiB each. As above
//	/etc/skel and its files       read; up to 100 files of 1 MiB. Anything else is left out
//	/var/lib/slipway/python       made, with sitecustomize.py. A link or a mount: session_start_uncooperative
//	/usr/local/bin                made, with a link named ssh. A link or a mount: session_start_no-ssh
//
// By /proc and /sys, which are the kernel's, up to a size: /proc/self/exe, fd, fdinfo, mountinfo and oom_score_adj,
// /proc/PID/stat and cmdline, /proc/net, /proc/sys/net, /sys/fs/cgroup.
//
// By looking without opening: mounts' pins, and the programs that a shell would find. What is found is started as the
// person.
//
// All of it but terminals' output and the agent's socket is done before anything of the image or the person runs.
// ~/.ssh, the files of the home, sftp and the ssh client are of processes that are the person by then. The names of
// other machines are looked up as Go's resolver does, from files of /etc that Docker mounts.
//
// Whatever runs for the person runs through guest spawn, which gives up every capability, becomes the work user and
// only then executes the command. So do guest files, which reaches files for the agent as that user does, and guest
// sftp. The kernel ends such programs more readily than the guest when memory runs out.
//
// [Guest] and the link do not depend on Linux: they stand on [Processes], of which a simulated container brings its
// own.
//
// # Cluster
//
// Where its config names a cluster, the guest takes ssh on its own address in the session's private network: with the
// one key of the session, for shells and commands of the work user. It writes that key, the others' names and the key
// they answer with into ~/.ssh, and stands in for ssh where the image has none.
//
// # SSH
//
// The agent hands callers of the person's own ssh over the link: shells, commands, sftp and ports, all as the work
// user. The server listens nowhere; its key is made when it is first asked for and stays in memory. A caller that goes
// is hung up on; what a command that has ended left in the background stays.
//
// # Link
//
// The link is one [tunnel.Mux]; the agent opens streams and each begins with one request: a big-endian uint32 length
// and that much JSON, {"op": …}, answered by the same framing {"ok": …} or {"error": {code, message, hint}}. Then:
//
//	hello            {version, pid, shells}: after it the link is in use
//	events           frames of JSON until the stream ends: {"ready"}, {"exit": code}, {"oom": count},
//	                 {"error"}
//	terminal.list    [session.Terminal]
//	terminal.open    session.TerminalRequest → session.Terminal
//	terminal.attach  session.AttachRequest → the stream speaks terminal's attach protocol
//	terminal.close   {id}
//	exec             session.ExecRequest → terminal's exec protocol
//	which            {names} → {name: path}: the programs that are installed
//	service.start    {id, argv, env, port, ready: path, timeout} → waits for it
//	service.stop     {id}
//	service.list     [{id, port, state, exitCode, error}]
//	listening        [port]: what takes connections on the loopback, by a port that somebody chose
//	activity         [{terminal, program, known}]: what runs in the foreground of each terminal
//	notice           {text}: a line shown in every terminal
//	file             {op, …} → an answer. read: then the file in pieces, each a uint32
//	                 length and that many bytes, up to one of length zero, then a last
//	                 answer. write: then pieces from the agent, then a last answer
//	ssh.host         {key}: the public key by which the ssh server proves who it is
//	ssh              {key} → raw bytes to the ssh server, which lets in whoever has that key
//	ssh.use          {last, input, program}: what went through it
//	dial             {port} → raw bytes to that port on the container's loopback
package guest
