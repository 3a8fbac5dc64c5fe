//go:build linux

package docker_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"slipway/backend/engine/enginetest"
)

// guestsVariable names the folder of the guests in a test process that [runAs] has started.
const guestsVariable = "SLIPWAY_TEST_GUESTS"

// rootless reports whether a user without root runs the engine, and these tests.
func rootless() bool { return os.Getenv(guestsVariable) != "" }

// engineSocket is the path of the engine's socket, empty if there is none.
func engineSocket() string {
	path, _ := strings.CutPrefix(os.Getenv(enginetest.DockerVariable), "unix://")
	return path
}

// engineOwner returns the user who runs the engine of the tests, if that is neither root nor who runs the tests.
func engineOwner() (uid uint32, ok bool) {
	info, err := os.Stat(engineSocket())
	if err != nil {
		return 0, false // the tests say so
	}
	uid = info.Sys().(*syscall.Stat_t).Uid
	return uid, uid != 0 && uid != uint32(os.Getuid())
}

// runAs runs the tests again as the user who runs the engine, as an agent beside it does, and returns their exit code.
// The guests of the tests are in dir.
func runAs(uid uint32, dir string) int {
	home := filepath.Join(dir, "home")
	err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(home, 0o755))
	var cmd *exec.Cmd
	if err == nil {
		cmd, err = enginetest.As(uid, home, os.Args[1:]...)
	}
	if err == nil {
		cmd.Env = append(cmd.Env, guestsVariable+"="+dir)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		err = cmd.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the tests of another user:", err)
		return 1
	}
	return 0
}

// without are the cases that an engine cannot pass.
func without() map[string]string {
	all := withoutOnPodman()
	if !rootless() {
		return all
	}
	// The tests of it run where a user has no control groups.
	const none = "without control groups nothing is counted or limited"
	cases := map[string]string{
		"running out of memory is reported":                             none,
		"stats are of running containers only":                          none,
		"an administrator changes the image's files, and has no mounts": "each session is root there, who is the user",
	}
	if all == nil { // Docker, which has a network of its own then
		const apart = "the registry of the tests is on this machine's loopback, which the daemon does not reach"
		cases["pull tells of progress that never goes back"] = apart
		cases["pull stops with its context"] = apart
	}
	maps.Copy(cases, all)
	return cases
}
