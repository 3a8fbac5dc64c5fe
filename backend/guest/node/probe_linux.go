package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"slipway/backend/engine/cgroup"
	"slipway/backend/session"
)

// probeWait is how long a probe waits for a connection.
const probeWait = 30 * time.Second

// maxReason is the most of a reason that a probe writes, in bytes.
const maxReason = 512

// probe FILE writes what works on this node to a file, and then waits for a connection to the port that is named there.
// It returns 0 also if nothing works.
func probe(args []string) int {
	runtime.LockOSThread() // with this thread end the processes that it starts
	if len(args) != 1 {
		fmt.Fprintln(os.Stderr, "slipway-guest probe: name the file to write")
		return 2
	}
	if err := explore(args[0]); err != nil {
		fmt.Fprintln(os.Stderr, "slipway-guest probe:", err)
		return 1
	}
	return 0
}

func explore(file string) error {
	own, _ := cgroup.Machine().Of("self") // a node without them has none
	found := Probe{MemoryGroup: own.Has("memory"), CPUGroup: own.Has("cpuset")}
	var err error
	if found.Host, err = os.Hostname(); err != nil {
		return err
	}
	if err := tryContainer(&found, Own); err != nil {
		found.OwnReason = err.Error()
	}
	if err := tryContainer(&found, Apptainer); err != nil {
		found.ApptainerReason = err.Error()
	}
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		return err
	}
	defer listener.Close()
	address := listener.Addr().(*net.TCPAddr)
	found.Port = address.Port
	if err := replace(file, found); err != nil {
		return err
	}
	time.AfterFunc(probeWait, func() { _ = listener.Close() })
	if conn, err := listener.Accept(); err == nil {
		_ = conn.Close()
	}
	return nil
}

// tryContainer makes an empty container, starts nothing in it and joins it to the outside.
func tryContainer(found *Probe, by Runner) error {
	dir, err := os.MkdirTemp("", "slipway-probe-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r := &runner{dir: dir, kernel: "main1",
		spec: Spec{Session: session.ID("probe"), Attempt: os.Getpid(), Runner: by, Box: Box{Private: true}}}
	if r.log, err = openLogWriter(logFile(dir, r.kernel)); err != nil {
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
	if err := r.start(&plan{Box: r.spec.Box, Dir: r.place, Layers: layers, Home: dir, Hostname: "probe",
		Made: by == Apptainer}); err != nil {
		r.end() // until everything that was said is in the log
		return cmp.Or(r.lastWords(), err)
	}
	if err := r.joinOutside(); err != nil {
		found.NetworkReason = err.Error()
	} else if r.network != nil {
		found.Network, found.NetworkReason = r.network.program, ""
	}
	return nil
}

// lastWords is the last line of the log, nil if it has none.
func (r *runner) lastWords() error {
	log, err := OpenLog(context.Background(), r.dir, r.kernel, session.LogOptions{Tail: 1})
	if err != nil {
		return nil
	}
	defer log.Close()
	said, _ := io.ReadAll(io.LimitReader(log, maxReason)) // what was read counts
	if text := strings.TrimSpace(string(said)); text != "" {
		return errors.New(text)
	}
	return nil
}
