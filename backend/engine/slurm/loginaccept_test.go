//go:build linux

package slurm_test

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/backend/engine"
	"slipway/backend/guest/node"
	"slipway/backend/scheduler"
	"slipway/backend/session"
	"slipway/backend/slurm"
)

// private has a session that serves, which another user of its node does not find.
func (l login) private(t *testing.T) {
	const port = "18123"
	s := l.site(t)
	w := l.asks(first, 1, 0)
	on := s.plan("a place", []engine.Wanted{w}, nil, placedFirst)[0].Place.Nodes[0]
	id := s.start(w.Kernels[0])
	served := s.shell(id, "python3 -m http.server "+port+" >/dev/null 2>&1 & "+
		"until python3 -c 'import urllib.request as r; r.urlopen(\"http://127.0.0.1:"+port+"\")' 2>/dev/null; do "+
		"sleep 0.1; done; echo serves")
	if served != "serves" {
		t.Fatalf("it says %q", served)
	}
	login{t, l.dir}.chore(choreOther, on, port)
	// It was served all the time.
	if said := s.shell(id, "python3 -c 'import urllib.request as r; print(r.urlopen(\"http://127.0.0.1:"+port+
		"\").status)'"); said != "200" {
		t.Errorf("it answers %q", said)
	}
}

func placedFirst(d []scheduler.Decision) bool { return d[0].Place != nil }

// cuts reaches guests behind firewalls: by the network of the node where nodes do not connect to the login node, and by
// a step of the job where the login node does not connect to nodes.
func (l login) cuts(t *testing.T) {
	for _, chore := range []string{choreLogin, choreNodes} {
		t.Run(chore, func(t *testing.T) {
			s := l.site(t)
			here := login{t, l.dir}
			here.chore(chore)
			t.Cleanup(func() { here.chore(choreMend) })
			w := l.asks(first, 1, 0)
			s.plan("a place", []engine.Wanted{w}, nil, placedFirst)
			if said := s.shell(s.start(w.Kernels[0]), "echo here"); said != "here" {
				t.Errorf("it says %q", said)
			}
		})
	}
}

// outside cancels a job past its agent, which is not there: the session whose turn it is runs to its end.
func (l login) outside(t *testing.T) {
	m := l.manage(t)
	var full []session.ID
	for i := range 2 {
		full = append(full, m.launch(fmt.Sprintf("full-%d", i), "", func(s *session.Spec) { s.Resources.CPU = 2 }))
	}
	for _, id := range full {
		m.becomes(id, "RUNNING", running)
	}
	third := m.launch("third", "echo out; exit 7", func(s *session.Spec) { s.Resources.CPU = 2 })
	m.becomes(third, "a wait", func(s session.Session) bool {
		return s.Wait != nil && (s.Wait.Code == session.CodeWaitResources || s.Wait.Said[0].Say == "slurmPriority")
	})
	m.stop()
	name := slurm.NameOf(full[0], 1)
	if out, err := exec.Command("scancel", "--name="+string(name)).CombinedOutput(); err != nil {
		t.Fatalf("scancel: %v: %s", err, out)
	}
	run := filepath.Join(l.dir, "runs", string(third)+"-1")
	(&site{T: t}).await("the end of the third", func() bool { // its guest waits for an agent at first
		_, err := node.ReadExit(run, "main1")
		return err == nil
	})
	m = l.manage(t)
	ended := m.becomes(full[0], "its end", over)
	if ended.Reason != session.ReasonForced || ended.Error == nil || !strings.Contains(ended.Error.Message, "Slurm") {
		t.Errorf("what was cancelled in Slurm ended as %s, %+v", ended.Reason, ended.Error)
	}
	ended = m.becomes(third, "its end", over)
	if ended.Reason != session.ReasonTaskFailed || ended.ExitCode == nil || *ended.ExitCode != 7 || ended.Attempt != 1 {
		t.Errorf("the third ended as %s, %+v, %+v", ended.Reason, ended.ExitCode, ended.Error)
	}
	if said := m.log(third); said != "out\n" {
		t.Errorf("the third wrote %q", said)
	}
	if s := m.becomes(full[1], "RUNNING", running); s.Attempt != 1 {
		t.Errorf("the second is attempt %d", s.Attempt)
	}
	if _, err := m.Terminate(t.Context(), full[1], false); err != nil {
		t.Fatal(err)
	}
	m.becomes(full[1], "its end", over)
	l.nothingLeft(t)
}

// log is what a session that has ended wrote.
func (m *manager) log(id session.ID) string {
	m.Helper()
	ctx, cancel := context.WithTimeout(m.Context(), time.Minute)
	defer cancel()
	log, err := m.Logs(ctx, id, session.LogOptions{})
	if err != nil {
		m.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(log)
	if err != nil {
		m.Fatal(err)
	}
	return string(text)
}
