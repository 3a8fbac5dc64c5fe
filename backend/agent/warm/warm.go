// Package warm has containers wait for sessions like the last ones, so that those need not wait for a container.
//
// One waits for each of the last and the preferred kinds of sessions, up to a limit. Sessions of a kind are of one
// person and have the same image, folders, directories and shared memory. The container runs with its guest, has no
// grants and uses no CPU. A launch of that kind gets its id; package launch then creates the session's container, and
// the engine takes the one that waits. Where nothing fits, or the engine has no such containers, a launch is an
// ordinary one.
package warm

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"slipway/backend/agent/host"
	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/gpu"
)

// Config configures a Pool.
type Config struct {
	host.Host
	Most    int                        // containers that wait at most
	Machine func() Machine             // as it is now
	Fits    func(session.Session) bool // whether a container can wait for such a session
	// Reserve has a container wait for a session, and Release removes it unless a session has taken it.
	Reserve func(context.Context, session.Session) error
	Release func(context.Context, session.Session) error
}

// Machine is what decides whether containers wait.
type Machine struct {
	Up      bool // its engine answers
	Battery bool // it runs on a battery
	Free    gpu.Bytes
	Memory  gpu.Bytes // all of it
}

// short reports whether power or memory is for other things.
func (m Machine) short() bool { return m.Battery || m.Free < max(spare, m.Memory/spareParts) }

// Pool is the containers that wait on a machine. It is safe for concurrent use.
type Pool struct {
	config Config
	wake   chan struct{}
	turn   chan struct{} // holds a token while a container is made, or an image removed

	mu        sync.Mutex // guards everything below
	waiting   []*reserve
	preferred map[session.ID]bool
	failed    map[string]session.ID // the last session of each kind for which no container could be made
	refused   bool                  // the engine has no containers that wait
}

// reserve is a container that waits, has been promised to a launch, or is being removed.
type reserve struct {
	kind     string
	session  session.Session // that it is made for: like an earlier one, with an id of its own
	promised time.Time       // zero: it is not
	leaving  bool
}

func (r *reserve) free() bool { return r.promised.IsZero() && !r.leaving }

const (
	// settling is how long the pool waits after a change, so that a launch that follows has the machine for itself.
	settling = 2 * time.Second
	// looking is the time between two looks at the machine's memory and power.
	looking = 30 * time.Second
	// newest is how many of the last sessions are looked at.
	newest = 50
	// spare is the least memory that must be unused, and one part in spareParts of the machine's.
	spare      = gpu.GiB
	spareParts = 8
	// storing is how long a launch may take until its session is in the records.
	storing = time.Minute
	// ending is how long the removal of all containers may take when the agent ends.
	ending = 5 * time.Second
)

// New returns an empty pool.
func New(config Config) *Pool {
	return &Pool{config: config, wake: make(chan struct{}, 1), turn: make(chan struct{}, 1),
		preferred: map[session.ID]bool{}, failed: map[string]session.ID{}}
}

// Run keeps containers waiting until ctx ends, and then removes them.
func (p *Pool) Run(ctx context.Context) {
	if p.config.Most == 0 {
		return
	}
	for ctx.Err() == nil {
		host.Wait(ctx, p.config.Clock.Timer(looking), p.wake)
		if p.config.Clock.Pause(ctx, settling) == nil {
			p.settle(ctx)
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ending)
	defer cancel()
	p.drop(ctx, func(*reserve) bool { return true })
}

// Wake has the pool look again.
func (p *Pool) Wake() { pace.Signal(p.wake) }

// Count is how many containers wait.
func (p *Pool) Count() (count int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.waiting {
		if r.free() {
			count++
		}
	}
	return count
}

// Take returns the id for a session that is launched now: that of a container that waits for one like it, or its own.
func (p *Pool) Take(s session.Session) session.ID {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.waiting {
		if r.free() && p.config.Fits(s) && r.kind == kindOf(s) {
			r.promised = p.config.Clock.Now()
			return r.session.ID
		}
	}
	return s.ID
}

// Return gives back the id of a session that was not stored.
func (p *Pool) Return(id session.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.waiting {
		if r.session.ID == id {
			r.promised = time.Time{}
		}
	}
}

// Prefer implements [session.Queue].
func (p *Pool) Prefer(_ context.Context, id session.ID, on bool) error {
	if _, err := p.config.Records.Get(id); err != nil {
		return err
	}
	p.mu.Lock()
	if on {
		p.preferred[id] = true
	} else {
		delete(p.preferred, id)
	}
	p.mu.Unlock()
	p.Wake()
	return nil
}

// Free removes all containers that wait, so that images can be removed. Until done is called, none is made; then those
// that are still wanted are.
func (p *Pool) Free(ctx context.Context) (done func()) {
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return func() {}
	}
	p.drop(ctx, (*reserve).free)
	return func() {
		<-p.turn
		p.Wake()
	}
}

// settle removes what is not wanted and has one more container wait, if the machine is quiet.
func (p *Pool) settle(ctx context.Context) {
	machine := p.config.Machine()
	if !machine.Up {
		return
	}
	wanted, quiet, err := p.wanted()
	if machine.short() {
		wanted = nil
	}
	if err != nil {
		p.config.Log.Warn("containers for the next sessions are not made", "err", err)
		return
	}
	p.drop(ctx, func(r *reserve) bool {
		if !r.promised.IsZero() {
			return p.over(r)
		}
		return !slices.ContainsFunc(wanted, func(s session.Session) bool { return kindOf(s) == r.kind })
	})
	for _, s := range wanted {
		if quiet && p.lacks(s) && p.add(ctx, s) {
			p.Wake() // the next one after a look at the machine
			return
		}
	}
}

// over reports whether the session that was promised a container has it, or will never need it.
func (p *Pool) over(r *reserve) bool {
	s, err := p.config.Records.Get(r.session.ID)
	if err != nil {
		return session.CodeOf(err) == session.CodeSessionNotFound && p.config.Clock.Since(r.promised) > storing
	}
	return s.Status == session.Running || s.Status == session.Terminating || s.Status.Terminal()
}

// lacks reports whether a container should wait for sessions like s. Where none could be made, it should again once a
// later session was launched.
func (p *Pool) lacks(s session.Session) bool {
	kind := kindOf(s)
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.refused && p.failed[kind] != s.ID && len(p.waiting) < p.config.Most &&
		!slices.ContainsFunc(p.waiting, func(r *reserve) bool { return r.kind == kind && r.free() })
}

// wanted returns the sessions for whose kinds containers wait: the last one, the preferred ones, and the others, each
// the newest first. It is quiet while no session is being started.
func (p *Pool) wanted() (list []session.Session, quiet bool, err error) {
	last, err := p.config.Records.List(session.Filter{Limit: newest})
	if err != nil {
		return nil, false, err
	}
	quiet = !slices.ContainsFunc(last, func(s session.Session) bool {
		return s.Status.HoldsResources() && s.Status != session.Running
	})
	last = slices.DeleteFunc(last, func(s session.Session) bool { return !p.config.Fits(s) })
	candidates := slices.Insert(last, min(1, len(last)), p.chosen()...)
	kinds := map[string]bool{}
	for _, s := range candidates {
		if kind := kindOf(s); len(kinds) < p.config.Most && !kinds[kind] {
			kinds[kind] = true
			list = append(list, s)
		}
	}
	return list, quiet, nil
}

// chosen returns the preferred sessions, the newest first.
func (p *Pool) chosen() (list []session.Session) {
	p.mu.Lock()
	ids := slices.Collect(maps.Keys(p.preferred))
	p.mu.Unlock()
	for _, id := range ids {
		if s, err := p.config.Records.Get(id); err == nil && p.config.Fits(s) { // it may have been purged
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b session.Session) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return list
}

// add has a container wait for a session like s, and reports whether one does.
func (p *Pool) add(ctx context.Context, s session.Session) bool {
	kind, like := kindOf(s), s.ID
	s.ID, s.Name, s.Spec.Name = session.NewID(), "", ""
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return false
	}
	err := p.config.Reserve(ctx, s)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
		delete(p.failed, kind)
		p.waiting = append(p.waiting, &reserve{kind: kind, session: s})
	case session.CodeOf(err) == session.CodeEngineUnsupported:
		p.refused = true
	case ctx.Err() == nil:
		p.failed[kind] = like
		p.config.Log.Info("no container waits for sessions like the last one", "image", s.Spec.Image, "err", err)
	}
	return err == nil
}

// drop removes those that which chooses. One that cannot be removed now is tried again with the next.
func (p *Pool) drop(ctx context.Context, which func(*reserve) bool) {
	var leaving []*reserve
	p.mu.Lock()
	for _, r := range p.waiting {
		if r.leaving = r.leaving || which(r); r.leaving {
			leaving = append(leaving, r)
		}
	}
	p.mu.Unlock()
	for _, r := range leaving {
		if err := p.config.Release(ctx, r.session); err != nil {
			p.config.Log.Warn("a container that waits for a session stays", "session", r.session.ID, "err", err)
			continue
		}
		p.mu.Lock()
		p.waiting = slices.DeleteFunc(p.waiting, func(one *reserve) bool { return one == r })
		p.mu.Unlock()
	}
}

// kindOf describes what cannot be changed when a session takes a container.
func kindOf(s session.Session) string {
	kind, _ := json.Marshal([]any{s.Owner, s.Spec.Image, s.Folders, s.Spec.Mounts, s.Spec.Resources.Shm, s.Spec.Admin})
	return string(kind) // texts and numbers can always be marshalled
}
