package shell

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Furnish fills an empty directory like an ordinary image: a home, programs, files in /etc, and the limits of the
// session where programs look for them.
func Furnish(dir, hostname string, uid, gid int, memory int64, cpus []int) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	for _, d := range []string{"bin", "dev/shm", "etc", "home/work", "mnt", "opt", "proc", "sys/fs/cgroup", "tmp",
		"usr/bin", "usr/local/bin", "var/log"} {
		err = errors.Join(err, root.MkdirAll(d, 0o755))
	}
	set, info := strings.Trim(strings.ReplaceAll(fmt.Sprint(cpus), " ", ","), "[]"), ""
	for i := range cpus {
		info += fmt.Sprintf("processor\t: %d\nmodel name\t: Simulated CPU\n\n", i)
	}
	files := map[string]string{
		"etc/hostname":   hostname,
		"etc/passwd":     fmt.Sprintf("root:x:0:0:root:/root:/bin/bash\nwork:x:%d:%d::/home/work:/bin/bash", uid, gid),
		"etc/group":      fmt.Sprintf("root:x:0:\nwork:x:%d:", gid),
		"etc/hosts":      "127.0.0.1\tlocalhost\n127.0.1.1\t" + hostname,
		"etc/os-release": "PRETTY_NAME=\"Slipway simulated session\"\nNAME=\"Slipway\"\nID=slipway-sim",
		"proc/version":   "Linux version 6.12.0-slipway-sim",
		"proc/cpuinfo":   strings.TrimSuffix(info, "\n"),
		"proc/meminfo": fmt.Sprintf(
			"MemTotal:  %8[1]d kB\nMemFree:  %8[2]d kB\nMemAvailable:  %8[2]d kB\nSwapTotal:  0 kB", memory>>10,
			(memory-baseMemory)>>10),
		"sys/fs/cgroup/memory.max":            fmt.Sprint(memory),
		"sys/fs/cgroup/memory.swap.max":       "0",
		"sys/fs/cgroup/memory.current":        fmt.Sprint(baseMemory),
		"sys/fs/cgroup/cpu.max":               fmt.Sprintf("%d 100000", max(1, len(cpus))*100000),
		"sys/fs/cgroup/cpuset.cpus.effective": set,
	}
	for _, name := range programs(utilities()) {
		files["usr/bin/"+name] = "#!/bin/sh\n# " + name + " is part of the simulated session's shell."
	}
	for name, text := range files {
		mode := os.FileMode(0o644)
		if strings.HasPrefix(name, "usr/bin/") {
			mode = 0o755
		}
		err = errors.Join(err, root.WriteFile(name, []byte(text+"\n"), mode))
	}
	return errors.Join(err, root.Close())
}
