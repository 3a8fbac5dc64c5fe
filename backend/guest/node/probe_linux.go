package node

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"

	"slipway/backend/session"
)

// probe prints what works on this node as one line of JSON. It returns 0 also if nothing does.
func probe([]string) int {
	runtime.LockOSThread() // with this thread end the processes that it starts
	own := ownGroups()
	_, all := own[""]
	found := Probe{Containers: true, MemoryGroup: all || own["memory"] != "", CPUGroup: all || own["cpuset"] != ""}
	if at, path := joiner(); path != "" {
		found.Network = joinArguments[at].program
	}
	if err := tryContainer(); err != nil {
		found.Containers, found.Reason = false, err.Error()
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		return 1
	}
	return 0
}

// tryContainer makes an empty container and starts nothing in it.
func tryContainer() error {
	dir, err := os.MkdirTemp("", "slipway-probe-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r := &runner{dir: dir, kernel: "main1",
		spec: Spec{Session: session.ID("probe"), Attempt: os.Getpid()}}
	if r.log, err = openLogWriter(filepath.Join(dir, "log")); err != nil {
		return err
	}
	defer r.end()
	node, err := r.settle()
	if err != nil {
		return err
	}
	layers, err := r.layers(node)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.place, configCopy), nil, 0o600); err != nil {
		return err
	}
	if err := r.copyGuest(); err != nil {
		return err
	}
	return r.start(&plan{Dir: r.place, Layers: layers, Home: dir, Hostname: "probe", Box: Box{Private: true}})
}
