// Package node runs the kernels of a session inside a job of Slurm, as an unprivileged user without a daemon.
//
// # Parts
//
// On the compute node, slipway-guest node RUN is the runner. It makes user, mount, pid, ipc and uts namespaces, and one
// for a private network, with one mapped id. It mounts the image's layers and everything that a container of the Docker
// engine has, and starts the guest as process 1. It forwards signals and passes the guest's link to whoever proves that
// they read the meeting file. slipway-guest relay SOCKET does that over its standard input and output, where the login
// node cannot connect to compute nodes. slipway-guest probe FILE says what works on a node.
//
// Where a site forbids user namespaces, Apptainer makes the container. It has the layers in one folder, the guest has
// no capabilities, and slipway-guest follow ends Apptainer with the runner.
//
// slipway-guest answer SOCKET has nothing to do with Slurm: it passes the guest's link to an agent that starts it
// inside the container, through an engine on another machine.
//
// On the login node, [Dial], [Through], [ReadStats], [OpenLog] and the Read functions are the other end.
//
// # Files
//
// A run has a folder that both share, which only its person can access:
//
//	spec.json               [Spec], written before the job is submitted
//	<kernel>.guest.json     engine.GuestConfig, likewise
//	<kernel>.begun          [Begun], created before the guest starts
//	<kernel>.meeting        [Meeting], while the guest runs
//	<kernel>.exit           [Exit], at the end, also if the container could not be made
//	<kernel>.log            what the guest wrote, see [LogLine]; <kernel>.log.1 is its earlier part
//	home/                   the home of all kernels, unless one is mounted
//
// A folder of the node has the rest:
//
//	layers/<hex>            unpacked layers, shared by all runs; <hex>.lock is locked while one is in use
//	runs/<run>-<kernel>     changes to the image, sockets and terminals' output of one kernel, removed at its end
//	runs/<run>-<kernel>.lock   locked while the runner lives, so that others remove what a killed one left
//	trash/                  what is being removed
//	lock                    locked while a run is added and what others left is looked for
//
// # Link
//
// A caller sends 32 random bytes and gets 32 others and a proof that the runner knows the meeting's secret. It answers
// with one byte that says what it wants, a link or one sample of use, and its own proof. A proof is the HMAC-SHA256, by
// the secret, of who proves, what is wanted and both random values. A new link closes the one before, and the guest
// connects again.
package node
