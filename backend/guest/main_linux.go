package guest

import (
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"slipway/backend/guest/keeper"
)

// Main is the program of the guest or one of more, by its first argument, or ssh by its own name. It returns the exit
// code.
func Main(args []string, more map[string]func(args []string) int) int {
	if filepath.Base(os.Args[0]) == "ssh" { // by the link that stands in for it
		return sshMain(args)
	}
	programs := map[string]func(args []string) int{"init": initialise, "worker": work, "spawn": spawn,
		"spawn-admin": spawnAdmin, "files": filesMain, "ssh": sshMain, "sftp": sftpMain, "ssh-setup": setupMain,
		"keep": keeper.Main}
	maps.Copy(programs, more)
	if len(args) > 0 && programs[args[0]] != nil {
		return programs[args[0]](args[1:])
	}
	fmt.Fprintln(os.Stderr,
		"slipway-guest runs inside the containers of Slipway: init | worker | spawn | files | keep | sftp | ssh")
	return 2
}

// codeBroken is the exit code of a guest that failed to start, except with [engine.ExitUnsafe].
const codeBroken = 125

// initialise is process 1. It starts the worker, reaps orphans, forwards signals and returns the worker's exit code.
func initialise([]string) int {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
		syscall.SIGUSR2)
	worker, err := os.StartProcess(selfPath, []string{"slipway-guest", "worker"}, &os.ProcAttr{
		Env: os.Environ(), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "slipway-guest: start worker:", err)
		return codeBroken
	}
	pid := worker.Pid
	go func() {
		for received := range signals {
			if number, ok := received.(syscall.Signal); ok {
				_ = syscall.Kill(pid, number) // it may have ended just now
			}
		}
	}()
	return reap(pid)
}

func reap(worker int) int {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			fmt.Fprintln(os.Stderr, "slipway-guest: wait for worker:", err)
			return codeBroken
		case pid == worker && status.Signaled():
			return 128 + int(status.Signal())
		case pid == worker:
			return status.ExitStatus()
		}
	}
}
