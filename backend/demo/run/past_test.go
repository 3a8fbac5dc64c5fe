package run

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/demo"
	"slipway/backend/local"
	"slipway/backend/place"
	"slipway/backend/session"
	"slipway/backend/store"
)

var update = flag.Bool("update", false, "record the past of the demo's machines again")

// TestThePastIsRecorded records what people did on the machines: the agent itself
// keeps the records, and is there for each session only. Thirty days of it, with
// -update, are the recordings in ../past; else the first days must be as there.
func TestThePastIsRecorded(t *testing.T) {
	weekdays := 2
	if *update {
		weekdays = 22
	}
	for _, m := range []demo.Machine{demo.Workstation(demo.Options{Seed: 1}), demo.Lab(demo.Options{Seed: 1})} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) { live(t, m, dir, weekdays) })
		r, path := recordingOf(t, filepath.Join(dir, "sim")), filepath.Join("..", "past", m.Name+".json.gz")
		if *update {
			write(t, path, r)
		}
		kept := read(t, path)
		if got, want := course(r), course(kept)[:weekdays]; !slices.Equal(got, want) {
			t.Errorf("%s recorded %q, in the recordings it is %q: record them again", m.Name, got, want)
		}
	}
}

func write(t *testing.T, path string, r demo.Recording) {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if err := errors.Join(json.NewEncoder(w).Encode(r), w.Close()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) (r demo.Recording) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	packed, err := gzip.NewReader(file)
	if err == nil {
		err = json.NewDecoder(packed).Decode(&r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// course is what became of the sessions of a recording, step by step.
func course(r demo.Recording) (lines []string) {
	for _, one := range r.Sessions {
		line := fmt.Sprint(one.Session.Name, " ", one.Session.Owner, " ", one.Session.Status, " ", one.Session.Reason)
		for _, phase := range one.Phases {
			for _, step := range phase.Steps {
				line += fmt.Sprint(" ", step.Step, " ", step.Result)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// live has people use a machine once a weekday.
func live(t *testing.T, m demo.Machine, dir string, weekdays int) {
	time.Local = time.UTC
	day, number := time.Now().Truncate(24*time.Hour), 0
	for turn := range demo.Turns(m) {
		if day = day.AddDate(0, 0, 1); day.Weekday() == time.Saturday {
			day = day.AddDate(0, 0, 2)
		}
		if number++; number > weekdays {
			return
		}
		time.Sleep(time.Until(day.Add(8*time.Hour + turn.After%(9*time.Hour))))
		now := time.Now()
		m.Fresh, m.Time = true, demo.Time{Speed: 1, Real: now, Shown: now, First: now}
		spec := turn.Act.Spec
		name, _, _ := strings.Cut(spec.Name, "-r")
		spec.Name = fmt.Sprintf("%s-%02d", name, number)
		fail(&spec, number)
		visit(t, m, dir, session.LaunchRequest{Key: spec.Name, Owner: turn.Act.Owner, Spec: spec}, turn.Stays)
	}
}

// fail has some of the batches end as sessions fail.
func fail(spec *session.Spec, number int) {
	if spec.Type != session.Batch {
		return
	}
	switch number % 9 {
	case 3:
		spec.Command = strings.Replace(spec.Command, "  sleep ", "  if [ $epoch = 9 ]; then echo "+
			"'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB' >&2; exit 1; fi\n  sleep ", 1)
	case 5:
		spec.Command = fmt.Sprintf("echo 'loading %s of features'\nsleep 20\nstress --vm-bytes %d\n",
			4*spec.Resources.Memory, 4*spec.Resources.Memory)
	case 7:
		spec.Timeout = session.Duration(7 * time.Minute)
	}
}

// visit starts the machine, launches, waits for the end, and switches it off.
func visit(t *testing.T, m demo.Machine, dir string, req session.LaunchRequest, stays time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l, err := local.Open(ctx, local.Config{Home: place.Home{Dir: dir}, Engine: local.EngineSim, Demo: &m,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	group.Go(func() {
		if err := l.Run(ctx); ctx.Err() == nil {
			t.Error(err)
		}
	})
	synctest.Wait()
	s, err := l.Agent.Launch(ctx, req)
	for gone := time.Duration(0); err == nil && s.TerminatedAt == nil; gone += time.Second {
		time.Sleep(time.Second)
		if gone == stays && req.Spec.Type != session.Batch {
			_, err = l.Agent.Terminate(ctx, s.ID, false)
		}
		if err == nil {
			s, err = l.Agent.Get(ctx, s.ID)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Second) // its last samples are booked
	cancel()
	group.Wait()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// recordingOf is what the agent whose data lie in a folder has kept.
func recordingOf(t *testing.T, dir string) (r demo.Recording) {
	t.Helper()
	books, err := store.Open(store.Config{Path: filepath.Join(dir, "agent.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer books.Close()
	sessions, err := books.List(session.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(sessions, func(a, b session.Session) int { return a.CreatedAt.Compare(b.CreatedAt) })
	for _, s := range sessions {
		past := demo.RecordedSession{Session: s}
		if past.Phases, err = books.History(s.ID); err != nil {
			t.Fatal(err)
		}
		log, err := os.ReadFile(filepath.Join(dir, "logs", string(s.ID), "main1.log"))
		if err != nil {
			t.Fatal(err)
		}
		past.Log, r.End = string(log), *s.TerminatedAt
		r.Sessions = append(r.Sessions, past)
	}
	r.Accounts = map[string]json.RawMessage{}
	err = books.EachAccount("", "~", func(key string, data []byte) error {
		if !strings.Contains(key, "/bucket/minute/") {
			r.Accounts[key] = slices.Clone(data)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
