package agent

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
	// glanceLimit is how long a look into one session may take.
	glanceLimit = 5 * time.Second
	// glances is how many sessions are looked into at once.
	glances = 8
)

// glance is what a look into a session showed.
type glance struct {
	known  bool
	busy   string    // what is at work; "" nothing
	busyAt time.Time // when it last was
}

// glanceAll looks into every session.
func (a *Agent) glanceAll(ctx context.Context, running []session.Session) map[session.ID]glance {
	var mu sync.Mutex // guards seen
	seen := make(map[session.ID]glance, len(running))
	var group sync.WaitGroup
	turns := make(chan struct{}, glances)
	for _, s := range running {
		turns <- struct{}{}
		group.Go(func() {
			defer func() { <-turns }()
			g := a.glance(ctx, s)
			mu.Lock()
			seen[s.ID] = g
			mu.Unlock()
		})
	}
	group.Wait()
	return seen
}

// glance asks the guests of a session what is at work in it. A session with a
// guest that cannot be reached at once is not known.
func (a *Agent) glance(ctx context.Context, s session.Session) glance {
	ctx, cancel := context.WithTimeout(ctx, glanceLimit)
	defer cancel()
	all := glance{known: len(s.Kernels) > 0}
	for _, k := range s.Kernels {
		client := a.guestNow(s.ID, k.Name)
		g := a.glanceAt(ctx, client)
		a.glanceSSH(ctx, s.ID, client, &g)
		all.known = all.known && g.known
		if g.busyAt.After(all.busyAt) {
			all.busy, all.busyAt = g.busy, g.busyAt
		}
	}
	return all
}

// glanceAt asks the guest of one kernel.
func (a *Agent) glanceAt(ctx context.Context, client Guest) glance {
	if client == nil {
		return glance{}
	}
	terminals, err := client.Activity(ctx)
	if err != nil {
		return glance{}
	}
	now := a.devices.moment().Wall
	g := glance{known: true}
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
		return glance{}
	}
	for _, service := range services {
		if !isJupyter(service.ID) || service.State != link.ServiceReady {
			continue
		}
		at, busy, err := kernelsOf(ctx, client, service.Port, now)
		switch {
		case err != nil:
			g.known = false
		case at.After(g.busyAt):
			g.busy, g.busyAt = busy, at
		}
	}
	return g
}

// glanceSSH asks the guest of one kernel what came by ssh. A guest that does not
// know of ssh was not reached by it.
func (a *Agent) glanceSSH(ctx context.Context, id session.ID, client Guest, g *glance) {
	if client == nil || !g.known {
		return
	}
	use, err := client.SSHUse(ctx)
	if err != nil {
		g.known = session.CodeOf(err) == "guest_call_invalid"
		return
	}
	a.idle.usedBySSH(id, use)
	if use.Program != "" {
		g.busy, g.busyAt = use.Program+" by ssh", a.devices.moment().Wall
	}
}

// guestNow returns the guest of a kernel if there is a link to it now.
func (a *Agent) guestNow(id session.ID, kernel string) Guest {
	c := a.courseOf(id)
	if c == nil {
		return nil
	}
	g := c.linkTo(kernel)
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.client
}

func isJupyter(service string) bool { return service == "jupyterlab" || service == "notebook" }

// kernelsOf asks a Jupyter server when one of its kernels last worked: now, if
// one is busy.
func kernelsOf(ctx context.Context, client Guest, port int, now time.Time) (at time.Time, what string, err error) {
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
