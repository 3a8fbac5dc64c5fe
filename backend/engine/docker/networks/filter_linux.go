package networks

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"slipway/backend/peer"
)

const usualConfig = "/etc/docker/daemon.json"

// unfiltered reports whether the daemon behind a local socket does not use the packet filter, so that it isolates no
// networks. Its API does not say: its command line and configuration do. If they are unknown, it counts as filtered.
func unfiltered(host string) bool {
	path, local := strings.CutPrefix(host, "unix://")
	if !local {
		return false
	}
	pid, ok := listener(path)
	if !ok {
		return false
	}
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	return err == nil && leavesFilter(strings.Split(string(bytes.TrimRight(line, "\x00")), "\x00"), os.ReadFile)
}

// listener is the process that listens at a socket. If systemd does, the daemon's pid file says.
func listener(path string) (pid int, ok bool) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return 0, false
	}
	defer conn.Close() //nolint:errcheck // nothing was written
	process, err := peer.Of(conn)
	if err != nil {
		return 0, false
	}
	defer process.Close() //nolint:errcheck // only read
	if process.PID != 1 {
		return process.PID, true
	}
	text, err := os.ReadFile("/var/run/docker.pid")
	if err != nil {
		return 0, false
	}
	pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
	return pid, err == nil
}

// leavesFilter reports whether a daemon's command line or its configuration turns the packet filter off.
func leavesFilter(args []string, read func(string) ([]byte, error)) bool {
	if len(args) == 0 || filepath.Base(args[0]) != "dockerd" {
		return false
	}
	config := usualConfig
	for i, arg := range args {
		name, value, given := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		switch {
		case arg == name && !strings.HasPrefix(arg, "-"):
		case name == "iptables" && given:
			on, err := strconv.ParseBool(value)
			return err == nil && !on
		case name == "iptables":
			return false
		case name == "config-file" && given:
			config = value
		case name == "config-file" && i+1 < len(args):
			config = args[i+1]
		}
	}
	data, err := read(config)
	if err != nil {
		return false
	}
	var said struct {
		IPTables *bool `json:"iptables"`
	}
	return json.Unmarshal(data, &said) == nil && said.IPTables != nil && !*said.IPTables
}
