package node

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"

	"slipway/backend/engine/cgroup"
	"slipway/backend/session"
)

// probe prints what works on this node as one line of JSON. It returns 0 also if nothing does.
func probe([]string) int {
	runtime.LockOSThread()                // with this thread end the processes that it starts
	own, _ := cgroup.Machine().Of("self") // a node without them has none
	found := Probe{Containers: true, MemoryGroup: own.Has("memory"), CPUGroup: own.Has("cpuset")}
	if err := tryContainer(&found); err != nil {
		found.Containers, found.Reason = false, err.Error()
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		return 1
	}
	return 0
}

// tryContainer makes an empty container, starts nothing in it and joins it to the outside.
func tryContainer(found *Probe) error {
	dir, err := os.MkdirTemp("", "slipway-probe-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r := &runner{dir: dir, kernel: "main1",
		spec: Spec{Session: session.ID("probe"), Attempt: os.Getpid(), Box: Box{Private: true}}}
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
	if err := r.start(&plan{Box: r.spec.Box, Dir: r.place, Layers: layers, Home: dir, Hostname: "probe"}); err != nil {
		return err
	}
	if err := r.joinOutside(); err != nil {
		found.NetworkReason = err.Error()
	} else if r.network != nil {
		found.Network = r.network.program
	}
	return nil
}
