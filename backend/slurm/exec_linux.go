package slurm

import (
	"os/exec"
	"runtime"
	"syscall"
)

// tie makes a command end with the agent, so that an sbatch that still tries to submit a job does not outlive an agent
// whose successor then looks for that job. The kernel ends it with the thread that started it, which the caller keeps
// until it calls untie.
func tie(cmd *exec.Cmd) (untie func()) {
	runtime.LockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return runtime.UnlockOSThread
}
