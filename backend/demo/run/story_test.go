package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
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
)

// happening is one line of the event log of a demonstration: what its machines
// tell of a session whenever its status or what it waits for changes.
type happening struct {
	at      time.Duration // since the demonstration began, in its own time
	machine string
	session session.ID
	text    string
}

// chronicle is the event log: in the order of time, and of what happens at the
// same moment in the order of machines and ids. What a
// session is for no time at all is left out.
type chronicle struct {
	mu   sync.Mutex
	rows []happening
}

func (c *chronicle) add(h happening) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows = append(c.rows, h)
}

func (c *chronicle) lines() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortStableFunc(c.rows, func(a, b happening) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.machine, b.machine), cmp.Compare(a.session, b.session))
	})
	var lines []string
	for i, h := range c.rows {
		if i+1 < len(c.rows) && c.rows[i+1].at == h.at && c.rows[i+1].session == h.session {
			continue
		}
		lines = append(lines, fmt.Sprintf("%v %s %s %s", h.at, h.machine, h.session, h.text))
	}
	return lines
}

// follow writes what an agent tells of its sessions until ctx ends.
func (c *chronicle) follow(ctx context.Context, l *local.Machine, first time.Time) error {
	last := map[session.ID]string{}
	return l.Agent.Watch(ctx, session.Cursor{}, func(e session.Event) error {
		s := e.Session
		if s == nil || s.TerminatedAt != nil && s.TerminatedAt.Before(first) {
			return nil
		}
		text := fmt.Sprint(s.Name, " ", s.Owner, " ", s.Status)
		if s.Wait != nil {
			text += fmt.Sprint(" ", s.Wait.Code)
		}
		for _, w := range s.Warnings {
			if strings.HasPrefix(string(w.Code), "session_idle_") {
				text += fmt.Sprint(" ", w.Code)
			}
		}
		if s.Reason != "" {
			text += fmt.Sprint(" ", s.Reason)
		}
		if s.ExitCode != nil {
			text += fmt.Sprint(" ", *s.ExitCode)
		}
		if last[s.ID] != text {
			last[s.ID] = text
			id := s.ID
			if s.Spec.Type == session.Inference {
				id = session.ID(s.Name) // it follows from the service, not from the story
			}
			c.add(happening{l.Clock.Since(first), l.Name, id, text})
		}
		return nil
	})
}

// tell has the machines of a story live through it for some of their time, without
// the computer's own speed having a part in it.
func tell(t *testing.T, dir string, o demo.Options, length time.Duration) (lines []string) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		goes := demo.Time{Speed: demo.MostSpeed, Real: now, Shown: now, First: now}
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		var told chronicle
		machines := []demo.Machine{demo.Workstation(o)}
		if o.Story.HasLab() {
			machines = append(machines, demo.Lab(o))
		}
		for _, m := range machines {
			acts := demo.OnWorkstation(o)
			if m.Name == demo.LabAgent {
				acts = demo.OnLab(o)
			}
			m.Time = goes
			l, err := local.Open(ctx, local.Config{Home: place.Home{Dir: filepath.Join(dir, m.Name)},
				Engine: local.EngineSim, Demo: &m, Log: slog.New(slog.DiscardHandler),
				// No client connects, and time stands still while a port is listened on.
				Listen: func(string, string) (net.Listener, error) { return nil, errors.New("no network") }})
			if err != nil {
				t.Fatal(err)
			}
			if m.Name != demo.LabAgent {
				if err := demo.Fill(ctx, l.Agent.Agent()); err != nil {
					t.Fatal(err)
				}
			}
			group.Go(func() {
				if err := l.Run(ctx); ctx.Err() == nil {
					t.Error(err)
				}
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			})
			group.Go(func() {
				if err := told.follow(ctx, l, now); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
			synctest.Wait() // both look at a machine that is ready
			if err := demo.Play(ctx, l.Agent.Launch, acts); err != nil {
				t.Fatal(err)
			}
			if m.Name == demo.LabAgent {
				if err := demo.Deploy(ctx, l.Agent, demo.ServicesOnLab(o)); err != nil {
					t.Fatal(err)
				}
			}
			group.Go(func() {
				if err := demo.KeepPlaying(ctx, l.Agent, m); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(length / demo.MostSpeed)
		lines = told.lines()
		cancel()
		group.Wait()
	})
	return lines
}

// points is what each story must have shown within its first minute.
var points = map[demo.Story][]string{
	demo.StoryLab: {"llm-eval mina PENDING scheduler_wait_resources",
		"vision-report ada PENDING scheduler_wait_dependency", "assistant-1 ada RUNNING",
		"sweep-lr-0.3 ada TERMINATED task-failed 3"},
	demo.StoryWorkstation: {"notebook ada RUNNING", "train-churn ada RUNNING",
		"sweep-lr-0.3 ada TERMINATED task-failed 3"},
	demo.StoryShortage: {"llm-eval mina PENDING scheduler_wait_resources", "vision-ablation ada PENDING",
		"upscale lena PENDING"},
	demo.StoryIdle: {"abandoned ada RUNNING session_idle_network"},
	demo.StoryFailure: {"sweep-lr-0.3 ada TERMINATED task-failed 3", "image-mistyped ada ERROR pull-failed",
		"batch-too-large ada TERMINATED oom-killed 137",
		"too-slow ada TERMINATED task-timeout"},
}

func TestTheSameSeedHasTheSameEventLog(t *testing.T) {
	const told = 8 * time.Minute
	for _, story := range demo.Stories {
		t.Run(string(story), func(t *testing.T) {
			o := demo.Options{Seed: 5, Story: story}
			first, second := tell(t, t.TempDir(), o, told), tell(t, t.TempDir(), o, told)
			for i := range max(len(first), len(second)) {
				if i >= len(first) || i >= len(second) || first[i] != second[i] {
					t.Fatalf("they differ at line %d:\n%s\n\n%s", i, around(first, i), around(second, i))
				}
			}
			t.Logf("%d lines", len(first))
			for _, point := range points[story] {
				if !slices.ContainsFunc(first, func(line string) bool {
					at, _, _ := strings.Cut(line, " ")
					gone, err := time.ParseDuration(at)
					return err == nil && gone <= time.Minute && strings.Contains(line, point)
				}) {
					t.Errorf("%q does not happen within a minute:\n%s", point, strings.Join(first, "\n"))
				}
			}
		})
	}
}

// around is what a log says near a line.
func around(lines []string, i int) string {
	return strings.Join(lines[min(max(0, i-3), len(lines)):min(len(lines), i+4)], "\n")
}
