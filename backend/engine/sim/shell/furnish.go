package shell

import (
	"errors"
	"fmt"
	"os"
)

// Furnish puts what an ordinary image holds into an empty directory, so that a
// session finds its home, its programs' names and the usual files in /etc.
func Furnish(dir, hostname string, uid, gid int) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	for _, d := range []string{"bin", "dev/shm", "etc", "home/work", "mnt", "opt", "proc", "sys/fs/cgroup", "tmp",
		"usr/bin", "usr/local/bin", "var/log"} {
		err = errors.Join(err, root.MkdirAll(d, 0o755))
	}
	files := map[string]string{
		"etc/hostname": hostname + "\n",
		"etc/passwd": fmt.Sprintf("root:x:0:0:root:/root:/bin/bash\nwork:x:%d:%d::/home/work:/bin/bash\n", uid,
			gid),
		"etc/group":      fmt.Sprintf("root:x:0:\nwork:x:%d:\n", gid),
		"etc/hosts":      "127.0.0.1\tlocalhost\n127.0.1.1\t" + hostname + "\n",
		"etc/os-release": "PRETTY_NAME=\"Slipway simulated session\"\nNAME=\"Slipway\"\nID=slipway-sim\n",
		"proc/version":   "Linux version " + Release + "\n",
	}
	for name, text := range files {
		err = errors.Join(err, root.WriteFile(name, []byte(text), 0o644))
	}
	for _, name := range programs(utilities()) {
		err = errors.Join(err, root.WriteFile("usr/bin/"+name,
			[]byte("#!/bin/sh\n# "+name+" is part of the simulated session's shell.\n"), 0o755))
	}
	return errors.Join(err, root.Close())
}

// Limits writes the files in which programs look for the limits of a session.
func (w *World) Limits(dir string, cpus []int) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	set := ""
	info := ""
	for i, cpu := range cpus {
		if i > 0 {
			set += ","
		}
		set += fmt.Sprint(cpu)
		info += fmt.Sprintf("processor\t: %d\nmodel name\t: Simulated CPU\n\n", i)
	}
	files := map[string]string{
		"sys/fs/cgroup/memory.max":            fmt.Sprintf("%d\n", w.Memory),
		"sys/fs/cgroup/memory.swap.max":       "0\n",
		"sys/fs/cgroup/memory.current":        fmt.Sprintf("%d\n", int64(baseMemory)),
		"sys/fs/cgroup/cpu.max":               fmt.Sprintf("%d 100000\n", w.CPUs*100000),
		"sys/fs/cgroup/cpuset.cpus.effective": set + "\n",
		"proc/cpuinfo":                        info,
		"proc/meminfo": fmt.Sprintf(
			"MemTotal:       %8d kB\nMemFree:        %8d kB\nMemAvailable:   %8d kB\nSwapTotal:             0 kB\n",
			w.Memory>>10, (w.Memory-baseMemory)>>10, (w.Memory-baseMemory)>>10),
	}
	for name, text := range files {
		err = errors.Join(err, root.WriteFile(name, []byte(text), 0o644))
	}
	return errors.Join(err, root.Close())
}
