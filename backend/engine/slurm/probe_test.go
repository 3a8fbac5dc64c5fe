//go:build linux

package slurm_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	engineslurm "slipway/backend/engine/slurm"
	"slipway/backend/guest/node"
	"slipway/backend/session"
)

// explorer is a program for nodes that finds something on them.
func explorer(t *testing.T, found node.Probe) []byte {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() }) //nolint:errcheck // of a test
	found.Host, found.Port = "127.0.0.1", listener.Addr().(*net.TCPAddr).Port
	data, err := json.Marshal(found)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Appendf(nil, `#!/bin/sh
[ "$1" = probe ] || exit 64
printf '%%s' '%s' >"$2.new" && mv "$2.new" "$2"
exec sleep 600
`, data)
}

// explored opens an engine that has its nodes tried, and waits until it says so. It returns the results by their ids.
func (s *stage) explored() map[string]session.Check {
	s.Helper()
	found := map[string]session.Check{}
	s.explore = true
	s.engine.Close() //nolint:errcheck // it never fails
	s.open()
	s.await("what works on the nodes", func() bool {
		info, err := s.engine.Info(s.Context())
		if err != nil {
			s.Fatal(err)
		}
		for _, c := range info.Checks {
			found[c.ID] = c
		}
		return found["node-limits"].ID != ""
	})
	return found
}

func (s *stage) explorations() (n int) {
	s.cluster.change(func(on *cluster) {
		for _, j := range on.jobs {
			if strings.HasPrefix(j.name, "slipway-probe-") {
				n++
			}
		}
	})
	return n
}

func TestAJobFindsOutWhatWorksOnTheNodes(t *testing.T) {
	s := newStageWith(t, 1, explorer(t, node.Probe{ApptainerReason: "this node has no apptainer",
		Network: "slirp4netns", MemoryGroup: true, CPUGroup: true}))
	for id, c := range s.explored() {
		if c.Result != session.CheckOK || c.Text == "" || c.Remedy != "" {
			t.Errorf("%s: %+v", id, c)
		}
	}
	s.await("the end of its job", func() bool {
		ended := false
		s.cluster.change(func(on *cluster) { ended = on.jobs[0].state == "CANCELLED" })
		return ended
	})
	if s.explored(); s.explorations() != 1 {
		t.Errorf("after a restart there were %d jobs", s.explorations())
	}
	if _, err := s.engine.Create(t.Context(), wanted(first, "").Kernels[0]); err != nil {
		t.Error(err)
	}
}

func TestWhatTheNodesLack(t *testing.T) {
	s := newStageWith(t, 1, explorer(t, node.Probe{OwnReason: "make namespaces: operation not permitted\x1b",
		NetworkReason: "slirp4netns: no such device"}))
	found := s.explored()
	if c := found["node-containers"]; c.Result != session.CheckOK || !strings.Contains(c.Text, "Apptainer") ||
		strings.Contains(c.Text, "\x1b") {
		t.Errorf("its runner: %+v", c)
	}
	for _, id := range []string{"node-network", "node-limits"} {
		if c := found[id]; c.Result != session.CheckWarning || c.Remedy == "" {
			t.Errorf("%s: %+v", id, c)
		}
	}
	if _, err := s.engine.Create(t.Context(), wanted(first, "").Kernels[0]); err != nil {
		t.Fatal(err)
	}
	spec, err := os.ReadFile(filepath.Join(s.run(first), "spec.json"))
	if err != nil || !strings.Contains(string(spec), `"runner":"apptainer"`) {
		t.Errorf("the job reads %s, %v", spec, err)
	}
}

func TestWhereNoRunnerWorksLaunchesAreRefused(t *testing.T) {
	s := newStageWith(t, 1, explorer(t, node.Probe{OwnReason: "no space left on device",
		ApptainerReason: "this node has no apptainer"}))
	if c := s.explored()["node-containers"]; c.Result != session.CheckFailed || c.Remedy == "" {
		t.Errorf("its runner: %+v", c)
	}
	w := wanted(first, "")
	if _, err := s.engine.Create(t.Context(), w.Kernels[0]); session.CodeOf(err) != session.CodeEngineUnsupported ||
		!strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("create: %v", err)
	}
	wrong := engineslurm.NewPlanner(s.engine).Check(t.Context(), w.Session.Spec)
	if !slices.ContainsFunc(wrong, func(f session.FieldError) bool { return f.Field == "image" && f.Hint != "" }) {
		t.Errorf("the launcher is told %+v", wrong)
	}
	s.program = explorer(t, node.Probe{ApptainerReason: "this node has no apptainer"})
	s.explored()
	s.await("another attempt", func() bool {
		_, err := s.engine.Create(t.Context(), w.Kernels[0])
		return err == nil
	})
}
