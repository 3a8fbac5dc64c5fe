package guest

import (
	"bytes"
	"strconv"

	"golang.org/x/sys/unix"
)

// signalSession sends signals to every process of a session, whatever process
// groups its shell has made of them. A process that ends meanwhile is ignored.
func signalSession(leader int, signals ...unix.Signal) {
	for _, pid := range processes() {
		if sessionOf(pid) != leader {
			continue
		}
		for _, signal := range signals {
			_ = unix.Kill(pid, signal)
		}
	}
}

// processes lists the process numbers of the container.
func processes() []int {
	dir, err := openKernel("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // what was read counts
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// sessionOf returns the session of a process, 0 if it is gone. See proc(5):
// the fields after the name in parentheses are state, ppid, pgrp, session.
func sessionOf(pid int) int {
	data, err := kernelFile("/proc/"+strconv.Itoa(pid)+"/stat", maxKernelText)
	if err != nil {
		return 0
	}
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 4 {
		return 0
	}
	session, _ := strconv.Atoi(string(fields[3]))
	return session
}
