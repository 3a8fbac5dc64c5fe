package access

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

func (v *view) Machine(ctx context.Context) (session.Machine, error) {
	m, err := v.agent.Machine(ctx)
	return v.machine(m), err
}

// machine adds who the caller is there.
func (v *view) machine(m session.Machine) session.Machine {
	m.Owner, m.Role, m.Allowance = v.who.Owner, v.who.Role, v.inner.Allowance(v.who.Owner)
	return m
}

// Preview implements [session.Sessions]. An admin may ask for another owner, whose limits and sessions then count.
func (v *view) Preview(ctx context.Context,
	owner string, spec session.Spec, count int) (session.Preview, error) {
	if owner == "" || !v.all {
		owner = v.who.Owner
	}
	wrong := v.refused(spec)
	hidden, err := v.hidden(ctx, spec.Image)
	if err != nil {
		return session.Preview{}, err
	}
	if hidden {
		wrong = append(wrong, forbiddenImage(spec.Image))
	}
	if len(wrong) == 0 {
		return v.agent.Preview(ctx, owner, spec, count)
	}
	without := spec
	without.Mounts = nil // some may be forbidden
	p, err := v.agent.Preview(ctx, owner, without, count)
	if hidden { // do not reveal whether it exists
		p.Image = nil
		p.Errors = slices.DeleteFunc(p.Errors, func(e session.FieldError) bool { return e.Field == "image" })
	}
	p.Spec.Mounts, p.Errors = spec.WithDefaults().Mounts, append(p.Errors, wrong...)
	p.Warnings = slices.DeleteFunc(p.Warnings, func(w session.FieldError) bool { return w.Field == "mounts" })
	return p, err
}

// refused returns what a spec requests that the caller may not have: directories that are not open to them, and, unless
// the machine's owner has allowed it, MPS, whose clients share /dev/shm with every program of the machine, and to be
// root in the container.
func (v person) refused(spec session.Spec) []session.FieldError {
	if v.all {
		return nil
	}
	folders := v.inner.Allowance(v.who.Owner).Folders
	hint := "No folder of this machine is open to you; ask an admin for one."
	if len(folders) > 0 {
		hint = "Open to you: " + strings.Join(folders, ", ") + "."
	}
	var wrong []session.FieldError
	for i, m := range spec.Mounts {
		if m.Folder != "" && m.Source == "" {
			continue // the agent looks only in those of the caller
		}
		if !slices.Contains(folders, m.Source) {
			wrong = append(wrong, session.FieldError{Field: fmt.Sprintf("mounts[%d].source", i),
				Kind: session.KindForbidden, Message: "You may not mount that folder of this machine.", Hint: hint})
		}
	}
	if spec.MPS && !v.inner.MPSForUsers() {
		wrong = append(wrong, session.FieldError{Field: "mps", Kind: session.KindForbidden,
			Message: "MPS is not open to users of this machine, because it shares the machine's memory in /dev/shm.",
			Hint:    "Launch without MPS, or ask the machine's owner to set gpu.mps."})
	}
	if e := v.inner.AdminSessions().Refuse(false); e != nil && spec.Admin {
		wrong = append(wrong, *e)
	}
	return wrong
}

// admitted makes a call that launches sessions of a spec, unless the caller may not have what the spec requests.
func admitted[T any](ctx context.Context, v person, spec session.Spec, call func() (T, error)) (result T, err error) {
	wrong := v.refused(spec)
	hidden, err := v.hidden(ctx, spec.Image)
	if hidden {
		wrong = append(wrong, forbiddenImage(spec.Image))
	}
	switch {
	case err != nil:
	case len(wrong) > 0:
		err = session.Refused(session.CodeInvalid, wrong...)
	default:
		result, err = call()
	}
	return result, err
}

// Launch implements [session.Sessions]. An admin may launch for another owner.
func (v *view) Launch(ctx context.Context, req session.LaunchRequest) (session.Session, error) {
	return v.launch(ctx, "Launch", req, v.agent.Launch)
}

// Accept implements [session.Moves] under the rules of a launch.
func (v *view) Accept(ctx context.Context, req session.LaunchRequest) (session.Session, error) {
	return v.launch(ctx, "Accept", req, v.agent.Accept)
}

func (v *view) launch(ctx context.Context, method string, req session.LaunchRequest,
	launch func(context.Context, session.LaunchRequest) (session.Session, error)) (s session.Session, err error) {
	if req.Owner == "" || !v.all {
		req.Owner = v.who.Owner
	}
	req.ByAdmin = v.all
	s, err = admitted(ctx, v.person, req.Spec, func() (session.Session, error) { return launch(ctx, req) })
	v.note(method, s.ID, when(req.Owner != v.who.Owner, "for "+req.Owner), err)
	return s, err
}

// Yield implements [session.Moves]. A session that has been moved already is not there any more: only who knows both
// ids learns that it was.
func (v *view) Yield(ctx context.Context, id, to session.ID) error {
	s, err := v.agent.Get(ctx, id)
	if err == nil && v.anothers(s) {
		err = session.NoSession(id)
	} else {
		err = v.agent.Yield(ctx, id, to)
	}
	v.note("Yield", id, string(to), err)
	return err
}

func (v *view) List(ctx context.Context, filter session.Filter) ([]session.Session, error) {
	if !v.all {
		filter.Owner = v.who.Owner
	}
	list, err := v.agent.List(ctx, filter)
	if !v.all {
		list = slices.DeleteFunc(list, v.anothers)
	}
	return list, err
}

// anothers reports whether a session is hidden from the caller.
func (v person) anothers(s session.Session) bool { return !v.all && s.Owner != v.who.Owner }

// What replaces the names of sessions of others, and of programs outside of sessions.
const (
	anothers = "another person's session"
	outside  = "a program outside Slipway"
)

// ListDirectories implements [session.Host]. A user sees only the directories that are open to them.
func (v *view) ListDirectories(ctx context.Context, at string) (session.DirectoryListing, error) {
	if v.all {
		listing, err := v.agent.ListDirectories(ctx, at)
		v.note("ListDirectories", "", at, err)
		return listing, err
	}
	folders := v.inner.Allowance(v.who.Owner).Folders
	if at == "" || path.Clean(at) == "/" {
		listing := session.DirectoryListing{Path: "/", Entries: []session.DirectoryEntry{}}
		for _, folder := range slices.Sorted(slices.Values(folders)) {
			listing.Entries = append(listing.Entries, session.DirectoryEntry{Name: folder[1:], Writable: true})
		}
		return listing, nil
	}
	if at = path.Clean(at); slices.Contains(folders, at) {
		return session.DirectoryListing{Path: at, Parent: "/", Entries: []session.DirectoryEntry{}}, nil
	}
	err := session.NewError(session.CodeFileNotFound, "You may not use that directory, or it does not exist.",
		"Choose one that is listed.")
	v.note("ListDirectories", "", at, err)
	return session.DirectoryListing{}, err
}

func (v *view) Devices(ctx context.Context) (session.DeviceBoard, error) {
	board, err := v.agent.Devices(ctx)
	return v.board(board), err
}

// board returns a copy of a board without the names of others.
func (v *view) board(b session.DeviceBoard) session.DeviceBoard {
	if v.all {
		return b
	}
	b.Devices = slices.Clone(b.Devices)
	for i := range b.Devices {
		holders := slices.Clone(b.Devices[i].Holders)
		for k, h := range holders {
			switch {
			case h.PID != 0:
				h.Name, h.Owner, h.PID = outside, "", 0
			case h.Owner != v.who.Owner:
				h.Session, h.Name, h.Owner = "", anothers, ""
			}
			holders[k] = h
		}
		b.Devices[i].Holders = holders
	}
	return b
}

// Accounts implements [session.Accelerators]. The usage of others is added up, so that the total of a device is
// correct.
func (v *view) Accounts(ctx context.Context, span session.AccountSpan) ([]session.Account, error) {
	rows, err := v.agent.Accounts(ctx, span)
	if v.all {
		return rows, err
	}
	type slot struct {
		start  time.Time
		device gpu.UUID
	}
	sums := map[slot]int{}
	told := make([]session.Account, 0, len(rows))
	for _, row := range rows {
		if row.Owner == v.who.Owner || row.Session == "" && row.Owner == "" {
			told = append(told, row)
			continue
		}
		row.Session, row.Name, row.Owner, row.Label = "", anothers, "", ""
		at := slot{row.Start, row.Device}
		if i, known := sums[at]; known {
			told[i].Add(row)
			continue
		}
		sums[at] = len(told)
		told = append(told, row)
	}
	return told, err
}

// Watch implements [session.Activity]. Events about others are left out.
func (v *view) Watch(ctx context.Context, after session.Cursor, fn func(session.Event) error) error {
	mine := map[session.ID]bool{}
	return v.agent.Watch(ctx, after, func(e session.Event) error {
		told, err := v.event(ctx, mine, e)
		if err != nil || told == nil {
			return err
		}
		return fn(*told)
	})
}

// event returns e as the caller may see it, or nil. mine caches which sessions are their own.
func (v *view) event(ctx context.Context, mine map[session.ID]bool, e session.Event) (*session.Event, error) {
	switch {
	case e.Reset != nil:
		reset, err := v.reset(ctx, *e.Reset)
		if err != nil {
			return nil, err
		}
		e.Reset = &reset
	case e.Session != nil:
		if v.anothers(*e.Session) {
			return nil, nil
		}
	case e.Removed != nil:
		if !v.all && e.Owner != v.who.Owner {
			return nil, nil
		}
		delete(mine, *e.Removed)
	case e.Machine != nil:
		e.Machine = new(v.machine(*e.Machine))
	case e.Devices != nil:
		e.Devices = new(v.board(*e.Devices))
	case e.Usage != nil:
		if e.Usage = v.usage(ctx, mine, e.Usage); len(e.Usage) == 0 {
			return nil, nil
		}
	default: // of a kind without a rule
		if !v.all {
			return nil, nil
		}
	}
	return &e, nil
}

// reset returns the whole state as the caller may see it. The newest sessions of all may include few of their own, so
// it lists those.
func (v *view) reset(ctx context.Context, r session.Reset) (session.Reset, error) {
	r.Machine = v.machine(r.Machine)
	if r.Devices != nil {
		r.Devices = new(v.board(*r.Devices))
	}
	if v.all {
		return r, nil
	}
	r.Sessions = nil
	for _, filter := range []session.Filter{{Live: true}, {Finished: true, Limit: session.ResetFinished}} {
		list, err := v.List(ctx, filter)
		if err != nil {
			return r, err
		}
		r.Sessions = append(r.Sessions, list...)
	}
	return r, nil
}

// usage returns the samples of the caller's own sessions.
func (v *view) usage(ctx context.Context, mine map[session.ID]bool, samples []session.Usage) []session.Usage {
	if v.all {
		return samples
	}
	return slices.DeleteFunc(slices.Clone(samples), func(u session.Usage) bool {
		own, known := mine[u.Session]
		if !known {
			own = v.own(ctx, u.Session) == nil
			mine[u.Session] = own
		}
		return !own
	})
}
