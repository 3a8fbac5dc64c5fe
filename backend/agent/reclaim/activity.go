package reclaim

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"slipway/backend/guest/link"
	"slipway/backend/session"
)

const (
	lookLimit = 5 * time.Second // for a look into one session
	looks     = 8               // sessions that are looked into at once
)

type activity struct {
	known  bool
	busy   string    // what works; empty: nothing
	busyAt time.Time // when it last did
}

func (w *Watch) lookAll(ctx context.Context, running []session.Session) map[session.ID]activity {
	var mu sync.Mutex // guards seen
	seen := make(map[session.ID]activity, len(running))
	var group sync.WaitGroup
	turns := make(chan struct{}, looks)
	for _, s := range running {
		turns <- struct{}{}
		group.Go(func() {
			defer func() { <-turns }()
			g := w.look(ctx, s)
			mu.Lock()
			seen[s.ID] = g
			mu.Unlock()
		})
	}
	group.Wait()
	return seen
}

// look asks the guests of a session what works in it. A session with a guest that is not connected is not known.
func (w *Watch) look(ctx context.Context, s session.Session) activity {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	all := activity{known: len(s.Kernels) > 0}
	for _, k := range s.Kernels {
		client := w.config.Guest(s.ID, k.Name)
		g := w.lookAt(ctx, client)
		w.lookAtSSH(ctx, s.ID, client, &g)
		all.known = all.known && g.known
		if g.busyAt.After(all.busyAt) {
			all.busy, all.busyAt = g.busy, g.busyAt
		}
	}
	return all
}

func (w *Watch) lookAt(ctx context.Context, client Guest) activity {
	if client == nil {
		return activity{}
	}
	terminals, err := client.Activity(ctx)
	if err != nil {
		return activity{}
	}
	now := w.config.Moment().Wall
	g := activity{known: true}
	for _, t := range terminals {
		switch {
		case !t.Known:
			g.known = false
		case t.Program != "":
			g.busy, g.busyAt = t.Program+" in a terminal", now
		}
	}
	services, err := client.Services(ctx)
	if err != nil {
		return activity{}
	}
	for _, service := range services {
		if service.ID != "jupyterlab" && service.ID != "notebook" || service.State != link.ServiceReady {
			continue
		}
		at, busy, err := KernelsOf(ctx, client, service.Port, now)
		switch {
		case err != nil:
			g.known = false
		case at.After(g.busyAt):
			g.busy, g.busyAt = busy, at
		}
	}
	return g
}

// lookAtSSH asks the guest of one kernel what uses ssh. A guest that does not know ssh has no use by it.
func (w *Watch) lookAtSSH(ctx context.Context, id session.ID, client Guest, g *activity) {
	if client == nil || !g.known {
		return
	}
	use, err := client.SSHUse(ctx)
	if err != nil {
		g.known = session.CodeOf(err) == session.CodeGuestInvalid
		return
	}
	w.usedBySSH(id, use)
	if use.Program != "" {
		g.busy, g.busyAt = use.Program+" by ssh", w.config.Moment().Wall
	}
}

// KernelsOf asks a Jupyter server when one of its kernels last worked: now, if one is busy.
func KernelsOf(ctx context.Context, client Guest, port int, now time.Time) (at time.Time, what string, err error) {
	const most = 1 << 20
	web := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return client.Dial(ctx, port) },
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/api/kernels",
		port), nil)
	if err != nil {
		return at, "", err
	}
	answer, err := web.Do(request)
	if err != nil {
		return at, "", err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	if answer.StatusCode != http.StatusOK {
		return at, "", fmt.Errorf("the notebook's server answered %s", answer.Status)
	}
	var kernels []struct {
		Name         string    `json:"name"`
		State        string    `json:"execution_state"`
		LastActivity time.Time `json:"last_activity"`
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, most)).Decode(&kernels); err != nil {
		return at, "", err
	}
	for _, k := range kernels {
		worked := k.LastActivity
		if k.State == "busy" || worked.After(now) {
			worked = now
		}
		if worked.After(at) {
			at, what = worked, "a notebook ("+k.Name+")"
		}
	}
	return at, what, nil
}
