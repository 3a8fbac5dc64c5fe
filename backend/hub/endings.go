package hub

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway/backend/session"
)

// UndoTime is how long a person can undo that a session is terminated.
const UndoTime = 10 * time.Second

// Ending is the end of a session that a person can still undo, or that failed.
type Ending struct {
	At    time.Time      `json:"at"`              // when the session is terminated, by the clock of this computer
	Error *session.Error `json:"error,omitempty"` // why it was not terminated
}

// endings terminates sessions, on request after a time in which a person can undo it. The hub waits and not the page,
// which may be closed meanwhile. When the hub stops, it terminates those that wait. After a crash they keep running.
type endings struct{ *finder }

// endBook has the sessions that are about to be terminated. It is guarded by shared.mu.
type endBook struct {
	all    map[session.ID]*ending
	group  sync.WaitGroup // of those that are not sent
	closed bool
}

type ending struct {
	Ending
	timer *time.Timer
	send  func()
}

// remove forgets an end and reports whether it was not sent or has failed.
func (b *endBook) remove(id session.ID) bool {
	e := b.all[id]
	if e == nil {
		return false
	}
	if e.timer.Stop() {
		b.group.Done()
	} else if e.Error == nil {
		return false
	}
	delete(b.all, id)
	return true
}

// view returns the end of a session as users see it.
func (b *endBook) view(s session.Session) *Ending {
	e := b.all[s.ID]
	if e == nil || !s.Status.Live() || s.Status == session.Terminating {
		return nil
	}
	return new(e.Ending)
}

// Terminate terminates a session. With undo it waits for [UndoTime] first, unless the end is forced. It fails like
// [Hub.Find] and [session.Sessions].Terminate, also with undo if the agent is not reached.
func (en *endings) Terminate(ctx context.Context, ref string, forced, undo bool) (session.Session, error) {
	m, id, err := en.find(ctx, ref)
	if err != nil {
		return session.Session{}, err
	}
	if forced || !undo {
		return en.terminate(ctx, m, id, forced)
	}
	ask, cancel := within(ctx, m)
	defer cancel()
	s, err := m.Agent.Get(ask, id)
	if err != nil || !s.Status.Live() || s.Status == session.Terminating {
		return s, err
	}
	en.mu.Lock()
	defer en.mu.Unlock()
	if en.ends.closed {
		return s, session.NewError(session.CodeServerUnavailable, "Slipway is shutting down.", "Start it again.")
	}
	if old := en.ends.all[id]; old != nil && old.Error == nil {
		return s, nil
	}
	e := &ending{Ending: Ending{At: time.Now().Add(UndoTime)}}
	e.send = func() {
		defer en.ends.group.Done()
		ctx, cancel := afterwards(ctx)
		defer cancel()
		_, err := en.terminate(ctx, m, id, false)
		en.sent(id, e, err)
	}
	en.ends.group.Add(1)
	e.timer = time.AfterFunc(UndoTime, e.send)
	en.ends.all[id] = e
	en.showEnd(id)
	return s, nil
}

func (en *endings) terminate(ctx context.Context, m *member, id session.ID, forced bool) (session.Session, error) {
	return en.asked(m, id)(m.Agent.Terminate(ctx, id, forced))
}

// Park ends a session so that it can be continued. It fails like [Hub.Find] and [session.Moves].Park.
func (en *endings) Park(ctx context.Context, ref string) (session.Session, error) {
	m, id, err := en.find(ctx, ref)
	if err != nil {
		return session.Session{}, err
	}
	return en.asked(m, id)(m.Agent.Park(ctx, id))
}

// asked takes an agent's answer to being asked to end a session.
func (en *endings) asked(m *member, id session.ID) func(session.Session, error) (session.Session, error) {
	return func(s session.Session, err error) (session.Session, error) {
		if err == nil {
			en.learn(m, s)
			en.mu.Lock()
			defer en.mu.Unlock()
			if en.ends.remove(id) {
				en.showEnd(id)
			}
		}
		return s, err
	}
}

// sent forgets an end that was sent, or shows why that failed.
func (en *endings) sent(id session.ID, e *ending, err error) {
	en.mu.Lock()
	defer en.mu.Unlock()
	if en.ends.all[id] != e {
		return
	}
	if known := en.sessions[id]; err == nil || known == nil {
		delete(en.ends.all, id)
	} else {
		e.Error = session.AsError(err, session.CodeUnreachable)
		en.log.Warn("a session was not terminated", "session", id, "error", err)
	}
	en.showEnd(id)
}

// showEnd publishes a session whose end has changed. The caller holds mu.
func (en *endings) showEnd(id session.ID) {
	if k := en.sessions[id]; k != nil {
		en.publishSession(k.member, k.session)
	}
}

// UndoTerminate keeps a session that was to be terminated, or forgets why that failed. It fails with
// session_update_conflict if the end was sent.
func (en *endings) UndoTerminate(ctx context.Context, ref string) (session.Session, error) {
	_, id, err := en.find(ctx, ref)
	if err != nil {
		return session.Session{}, err
	}
	if !locked(en.shared, func() bool {
		undone := en.ends.remove(id)
		if undone {
			en.showEnd(id)
		}
		return undone
	}) {
		return session.Session{}, session.NewError(session.CodeSessionConflict,
			"There is no termination to undo.", "A session that was terminated can be launched again.")
	}
	s, _, err := en.Get(ctx, string(id))
	return s, err
}

// close terminates all sessions that wait for it, and returns when their agents have answered.
func (en *endings) close() {
	en.mu.Lock()
	en.ends.closed = true
	for _, e := range en.ends.all {
		if e.timer.Stop() {
			go e.send()
		}
	}
	en.mu.Unlock()
	en.ends.group.Wait()
}

// Loss is what terminating a session deletes and cancels.
type Loss struct {
	// names in its home directory, at most 20: not those of mounted folders, nor those that begin with a dot
	Files   []string    `json:"files"`
	Count   int         `json:"count"`   // of all such names
	Unknown bool        `json:"unknown"` // its home directory cannot be listed, so it may have files
	Cancels []Cancelled `json:"cancels"` // sessions that start after it, and those that start after them
}

// Cancelled is a session that is cancelled because another one ends.
type Cancelled struct {
	ID   session.ID `json:"id"`
	Name string     `json:"name"`
}

const (
	lossesNamed = 20
	lossTime    = 5 * time.Second // how long listing a home directory may take
)

// Loss returns what terminating a session would delete and cancel. It fails like [Hub.Get].
func (en *endings) Loss(ctx context.Context, ref string) (Loss, error) {
	s, heard, err := en.Get(ctx, ref)
	if err != nil {
		return Loss{}, err
	}
	loss := Loss{Files: []string{}, Cancels: locked(en.shared, func() []Cancelled { return en.cancelled(s.ID) })}
	if s.Status != session.Running || s.HomeFolder() != nil {
		return loss, nil
	}
	agent, _, err := en.Find(ctx, string(s.ID))
	var listing session.FileListing
	if err == nil && heard == nil {
		ctx, cancel := context.WithTimeout(ctx, lossTime)
		defer cancel()
		listing, err = agent.ListFiles(ctx, session.Place{Session: s.ID}, session.ListRequest{Path: session.Home})
	}
	loss.Unknown = err != nil || heard != nil
	for _, name := range unsaved(s, listing.Entries) {
		if loss.Count++; loss.Count <= lossesNamed {
			loss.Files = append(loss.Files, name)
		}
	}
	return loss, nil
}

// cancelled returns the live sessions that start after a session, and those that start after them. The caller holds mu.
func (st *state) cancelled(id session.ID) []Cancelled {
	found := []Cancelled{}
	for next := []session.ID{id}; len(next) > 0; next = next[1:] {
		for _, waits := range st.dependents(next[0]) {
			if k := st.sessions[waits]; k != nil && k.session.Status == session.Pending {
				one := Cancelled{ID: waits, Name: k.session.Name}
				if !slices.Contains(found, one) {
					found, next = append(found, one), append(next, waits)
				}
			}
		}
	}
	return found
}

// unsaved returns the names in a home directory that are deleted with their session.
func unsaved(s session.Session, entries []session.FileInfo) []string {
	kept := map[string]bool{}
	for _, mount := range slices.Concat(s.Spec.Mounts, each(s.Folders, func(f session.FolderMount) session.Mount {
		return session.Mount{Target: f.Target}
	})) {
		below, _ := strings.CutPrefix(session.MountTarget(mount), session.Home+"/")
		below, _, _ = strings.Cut(below, "/")
		kept[below] = true
	}
	var names []string
	for _, file := range entries {
		if name := strings.ToValidUTF8(string(file.Name), "\uFFFD"); !strings.HasPrefix(name, ".") && !kept[name] {
			names = append(names, name)
		}
	}
	return names
}
