package hub

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// relocations move running and parked sessions to other machines, with their homes, folders and images. Each is an
// operation with a record on the shelf, which is stored before anything is done, so that any later hub goes on. The
// session that is moved is parked before the other machine is asked to launch the next one, so two never run. Until
// that one runs, the first machine has everything that continues the session, and a failure or a person's wish does. A
// copy goes the same way, but parks nothing: the session keeps running, and another one of its own name is launched.
type relocations struct {
	launches   *launches
	endings    *endings
	transfers  *transfers
	operations *operations
	records    []relocation // guarded by mu
}

const (
	relocationsKey = "hub.relocations"
	lookEvery      = 300 * time.Millisecond // at a session that ends or starts
	measureMost    = 10 * time.Second       // of looking at what would be sent
)

// stage is what a relocation does, or does next.
type stage int

const (
	stageSync   stage = iota // the files are copied while the session runs; a copy makes its image
	stagePark                // the session is parked; the files of a copy are copied
	stageRest                // what has changed since is copied; not for a copy
	stageImage               // the image is sent
	stageLaunch              // the next session is launched, and starts
	stageClear               // it has moved: a person is asked whether what is left is deleted; a copy does not ask
	stageDone
	stageBack // it failed: the session is continued where it was, or the copy is undone
)

// relocation is the record of a move or a copy.
type relocation struct {
	Session session.ID    `json:"session"` // as it is on the first machine
	Name    string        `json:"name"`
	From    string        `json:"from"` // agents
	To      string        `json:"to"`
	Stage   stage         `json:"stage"`
	Folders []movedFolder `json:"folders"`          // the first is the home
	Image   string        `json:"image,omitempty"`  // as the other machine knows it
	Key     string        `json:"key"`              // of the launch there
	Next    session.ID    `json:"next,omitempty"`   // what was launched there
	Parked  bool          `json:"parked,omitempty"` // it was parked already, and stays so if it is not moved
	// Why it failed, if Stage is stageBack.
	Why  *session.Error `json:"why,omitempty"`
	Drop bool           `json:"drop,omitempty"` // with stageBack: what it has made on the other machine is deleted
	relocatedCopy
}

// movedFolder is a folder that goes with a session.
type movedFolder struct {
	Folder session.FolderID `json:"folder,omitempty"` // at the first machine; empty: the home of a session without one
	Name   string           `json:"name"`             // at the other machine
	Path   string           `json:"path,omitempty"`   // of the home in its folder
	Fresh  bool             `json:"fresh"`            // the move makes it there
	Made   session.FolderID `json:"made,omitempty"`   // what the move has made there
}

// Relocating asks for a session to be moved to another machine, or to be copied there or on its own machine.
type Relocating struct {
	Agent string `json:"agent"`          // the agent of that machine
	Copy  bool   `json:"copy,omitempty"` // the session keeps running, and a copy of it is launched
	Name  string `json:"name,omitempty"` // of the copy; empty: that of the session with -copy
}

// RelocationPlan is what moving or copying a session would do.
type RelocationPlan struct {
	Agent string    `json:"agent"`
	Name  string    `json:"name,omitempty"` // of the copy
	Files int       `json:"files"`          // of the home and the mounted folders
	Bytes gpu.Bytes `json:"bytes"`
	More  bool      `json:"more"` // there was no time to count all
	// Seconds is how long that would take at the rate of the last large copy between the two; absent: there was none.
	Seconds *float64 `json:"seconds,omitempty"`
	// Image is the size of the session's image if the other machine does not have it, else 0. What the session has
	// installed comes to it.
	Image gpu.Bytes `json:"image"`
	// Home is the folder there that was its home before and becomes as the home is now; empty: a new one is made.
	Home string        `json:"home,omitempty"`
	Wait *session.Wait `json:"wait,omitempty"` // for what it would wait there; absent: it would start at once
}

// PlanRelocation says what moving or copying a session would do. It fails like [Hub.Relocate].
func (r *relocations) PlanRelocation(ctx context.Context, ref string, req Relocating) (RelocationPlan, error) {
	at, err := r.locate(ctx, ref, req)
	if err != nil {
		return RelocationPlan{}, err
	}
	plan := RelocationPlan{Agent: at.to.Name(), Name: at.record.Copy, Wait: at.wait, Home: at.before}
	if base, err := at.from.Agent.ListImages(ctx); err == nil && !at.hasImage && at.from != at.to {
		for _, image := range base {
			if slices.ContainsFunc(image.Refs, func(name string) bool {
				return session.SameImage(name, at.session.Spec.Image)
			}) {
				plan.Image = image.Size
			}
		}
	}
	limited, cancel := context.WithTimeout(ctx, measureMost)
	defer cancel()
	for i := range at.record.Folders {
		c := r.copyOf(at, i)
		_, err := c.measure(limited)
		plan.Files, plan.Bytes = plan.Files+c.files, plan.Bytes+gpu.Bytes(c.total)
		if plan.More = plan.More || limited.Err() != nil; err != nil && !plan.More {
			return RelocationPlan{}, err
		}
	}
	plan.Seconds = r.transfers.rates.seconds(at.from, at.to, int64(plan.Bytes+plan.Image))
	return plan, nil
}

// Relocate starts to move or to copy a running or a parked session. It fails with session_update_conflict for one that
// cannot be moved, or not to that machine, and says why; with session_create_already-exists if the name of the copy is
// taken; and with engine_create_unsupported where no image can be made of sessions.
func (r *relocations) Relocate(ctx context.Context, ref string, req Relocating) (Operation, error) {
	at, err := r.locate(ctx, ref, req)
	if err != nil {
		return Operation{}, err
	}
	if at.wait != nil {
		return Operation{}, session.NewError(session.CodeSessionConflict,
			fmt.Sprintf("%s has no room for %s now: %s", at.to.Name(), at.session.Name, at.wait.Message),
			"Make room there, or try again later.")
	}
	return r.begin(*at.record)
}

// begin starts the operation of a relocation, or continues it.
func (r *relocations) begin(record relocation) (Operation, error) {
	kind := SessionMove
	if record.Copy != "" {
		kind = SessionCopy
	}
	return r.operations.startOn("move "+string(record.Session), kind, record.Name,
		func(ctx context.Context, work *Work) error {
			work.Concerns(record.To)
			m := &moving{relocations: r, work: work, record: &record}
			return m.run(ctx)
		})
}

// resumeRelocations continues the moves that an earlier hub has begun.
func (r *relocations) resumeRelocations() {
	all := read[[]relocation](r.launches.shared, relocationsKey, "the moves under way cannot be read")
	locked(r.launches.shared, func() bool { r.records = all; return true })
	for _, record := range all {
		if _, err := r.begin(record); err != nil {
			r.launches.log.Error("a move is not continued", "session", record.Session, "error", err)
		}
	}
}

// save stores a record, or drops it.
func (r *relocations) save(record relocation, keep bool) error {
	shared := r.launches.shared
	shared.saving.Lock()
	defer shared.saving.Unlock()
	all := locked(shared, func() []relocation {
		rest := slices.DeleteFunc(slices.Clone(r.records),
			func(other relocation) bool { return other.Session == record.Session })
		if keep {
			rest = append(rest, record)
		}
		return rest
	})
	if err := shared.shelf.Save(relocationsKey, all); err != nil {
		return err
	}
	locked(shared, func() bool { r.records = all; return true })
	return nil
}

// located is a session, and the machine to which it is to go.
type located struct {
	session  session.Session
	from, to *member
	record   *relocation
	wait     *session.Wait
	hasImage bool
	before   string // the folder there that was the home before; "": there is none
}

// locate finds out whether a session can go to a machine, and what goes with it.
func (r *relocations) locate(ctx context.Context, ref string, req Relocating) (*located, error) {
	l := r.launches
	from, id, err := l.findParked(ctx, ref)
	if err != nil {
		return nil, err
	}
	to, err := l.member(req.Agent)
	if err != nil {
		return nil, err
	}
	s, err := from.Agent.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := r.mayGo(ctx, s, from, to, req.Copy); err != nil {
		return nil, err
	}
	at := &located{session: s, from: from, to: to,
		record: &relocation{Session: id, Name: s.Name, From: from.Name(), To: to.Name(), Key: "move/" + newID()}}
	if s.Continuable() {
		at.record.Stage, at.record.Parked = stageRest, true
	}
	if req.Copy {
		if err := r.toCopy(at, req.Name); err != nil {
			return nil, err
		}
	}
	if err := r.offer(ctx, at); err != nil {
		return nil, err
	}
	return at, r.chooseFolders(ctx, at)
}

// mayGo says why a session cannot be moved or copied.
func (r *relocations) mayGo(ctx context.Context, s session.Session, from, to *member, copies bool) error {
	refuse := func(message, hint string) error {
		return session.NewError(session.CodeSessionConflict, message, hint)
	}
	done := "moved"
	if copies {
		done = "copied"
	}
	switch {
	case from == to && !copies:
		return refuse(fmt.Sprintf("%s is on %s already.", s.Name, to.Name()), "Choose another machine.")
	case !s.Parkable() && !s.Continuable():
		return refuse(s.Name+" cannot be "+done+".", "Only an interactive session with one kernel can be "+done+
			", while it runs or after it was stopped and kept. One that waits is moved as it is.")
	case locked(r.launches.shared, func() bool { return r.launches.personAt(from, s.Owner) != "" }):
		return refuse(s.Name+" belongs to "+s.Owner+".", "Only its person can do that.")
	}
	if m, err := from.Agent.Machine(ctx); err != nil {
		return err
	} else if !s.Continuable() && slices.Contains(m.Lacks, session.FeatureCommit) {
		return session.Refused(session.CodeEngineUnsupported, session.FeatureCommit.Fault("id"))
	}
	for _, m := range s.Spec.Mounts {
		if m.Source != "" && from != to {
			return refuse(fmt.Sprintf("%s mounts the directory %s of %s, which does not go with it.", s.Name, m.Source,
				from.Name()), "Link the directory as a folder, and launch the session with that.")
		}
	}
	return nil
}

// offer asks the other machine whether it would run the session. What is not there yet does not count.
func (r *relocations) offer(ctx context.Context, at *located) error {
	spec := elsewhere(at.session)
	spec.Name = cmp.Or(at.record.Copy, spec.Name)
	spec.Mounts, spec.Setup = nil, ""
	p, err := at.to.Agent.Preview(ctx, "", spec, 1)
	if err != nil {
		return err
	}
	p.Errors = slices.DeleteFunc(p.Errors, func(e session.FieldError) bool { return e.Field == "image" })
	if len(p.Errors) > 0 {
		return session.Refused(session.CodeSessionConflict, p.Errors...)
	}
	at.hasImage = p.Image != nil
	if o := offerOf(at.to, p); len(o.forecasts) > 0 {
		at.wait = o.forecasts[0].Wait
	}
	return nil
}

// chooseFolders says what the home and the mounted folders are called on the other machine. A folder that is there is
// used; it must not have other files of the same names.
func (r *relocations) chooseFolders(ctx context.Context, at *located) error {
	lists, err := r.transfers.folders.foldersOf(ctx, []*member{at.to})
	if err != nil {
		return err
	}
	there := func(name string) bool {
		return slices.ContainsFunc(lists[0], func(f session.Folder) bool {
			return f.Name == name && f.State == session.FolderReady
		})
	}
	home := movedFolder{Name: at.session.Name, Fresh: true}
	if mounted := at.session.HomeFolder(); mounted != nil {
		home.Folder, home.Name, home.Path = mounted.Folder, mounted.Name, mounted.Path
	}
	copies := at.record.Copy != ""
	if copies {
		home.Name = at.record.Copy
	} else {
		at.before = earlierHome(r.predecessors(at), lists[0])
	}
	if at.before != "" {
		home.Name = at.before
	} else {
		base := home.Name
		for n := 2; there(home.Name) || copies && there(home.Name+partFolder); n++ {
			home.Name = session.Numbered(base[:min(len(base), session.FolderNames.Max-4)], "-", n-1, 0)
		}
	}
	at.record.Folders = []movedFolder{home}
	if at.from == at.to { // the copy has the same folders mounted
		return nil
	}
	for _, m := range at.session.Folders {
		known := slices.ContainsFunc(at.record.Folders, func(f movedFolder) bool { return f.Folder == m.Folder })
		if !m.Auto && !known {
			at.record.Folders = append(at.record.Folders, movedFolder{Folder: m.Folder, Name: m.Name,
				Fresh: !there(m.Name)})
		}
	}
	return nil
}

// predecessors are the parked sessions of the other machine that the session continues.
func (r *relocations) predecessors(at *located) (all []session.Session) {
	l := r.launches
	l.mu.Lock()
	defer l.mu.Unlock()
	id := at.session.From
	for range len(l.sessions) { // an untrusted agent could report a circle
		k := l.sessions[id]
		if k == nil {
			break
		}
		if k.member == at.to && k.session.Continuable() {
			all = append(all, k.session)
		}
		id = k.session.From
	}
	return all
}

// earlierHome is the name of the folder that a predecessor has left as its home, if no session uses it now.
func earlierHome(predecessors []session.Session, folders []session.Folder) string {
	for _, s := range predecessors {
		for _, f := range folders {
			if f.ID == s.HomeFolder().Folder && f.State == session.FolderReady && len(f.UsedBy) == 0 && !f.Linked() &&
				s.HomeFolder().Path == "" {
				return f.Name
			}
		}
	}
	return ""
}

// copyOf is the copy of a folder of the session as it is now.
func (r *relocations) copyOf(at *located, number int) *fileCopy {
	one := at.record.Folders[number]
	c := &fileCopy{transfers: r.transfers, slots: make(chan struct{}, copiesAtOnce), source: one.Path,
		from: copyEnd{at.from, session.Place{Folder: one.Folder}}, to: copyEnd{member: at.to}}
	home := at.session.HomeFolder()
	switch {
	case number == 0 && home != nil:
		c.from.place.Folder, c.source = home.Folder, home.Path
	case number == 0:
		c.from.place = session.Place{Session: at.session.ID}
		for _, m := range at.session.Folders {
			if below, ok := strings.CutPrefix(m.Target, session.Home); ok && below != "" {
				c.except = append(c.except, path.Clean(below))
			}
		}
	}
	return c
}
