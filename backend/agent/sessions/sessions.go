// Package sessions implements the calls about sessions: it checks a draft, stores a launch, and changes and describes
// what is stored.
//
// Launch checks the spec, stores a PENDING session with the first row of its history in one transaction, and wakes the
// queue.
package sessions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"slipway/backend/agent/folders"
	"slipway/backend/agent/host"
	"slipway/backend/agent/images"
	"slipway/backend/agent/launch"
	"slipway/backend/agent/people"
	"slipway/backend/agent/queue"
	"slipway/backend/agent/reclaim"
	"slipway/backend/agent/records"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

// MostLive is the limit of live sessions of one person, so that one person cannot slow down the queue for all.
const MostLive = 2000

// Config configures Sessions.
type Config struct {
	host.Host
	KeepFinished int // records of ended sessions that are kept
	NewID        func(session.LaunchRequest) session.ID
	Folders      *folders.Folders
	Queue        *queue.Queue
	Images       *images.Images
	Launch       *launch.Runner
	People       *people.People
	Idle         *reclaim.Watch
	// Confidential keeps what comes with launches until they end.
	Confidential interface {
		Put(id session.ID, c session.Confidential) error
		Drop(id session.ID)
	}
	Removed func(session.Session) // called when a record was removed
	// Warm has containers that wait for launches. Take returns the id with which a session is to be stored, and
	// Return takes back that of one that was not.
	Warm interface {
		Take(s session.Session) session.ID
		Return(id session.ID)
	}
}

// Sessions are those of a machine. Its methods are safe for concurrent use.
type Sessions struct{ config Config }

// New returns the sessions of a machine.
func New(config Config) *Sessions { return &Sessions{config: config} }

// check returns everything that is wrong with a spec on this machine, except that its name is used.
func (m *Sessions) check(ctx context.Context, owner string, spec session.Spec) []session.FieldError {
	info := m.config.Health.State().Info
	wrong := spec.Validate(m.config.Clock.Now(), session.Limits{CPUs: info.CPUs, Memory: info.Memory})
	if spec.Agent != "" && spec.Agent != m.config.Agent {
		wrong = append(wrong, session.FieldError{Field: "agent", Kind: session.KindInvalid,
			Message: fmt.Sprintf("This agent is %s, not %s.", m.config.Agent, spec.Agent),
			Hint:    "Leave it empty to let Slipway choose."})
	}
	if spec.Admin && m.config.People.AdminSessions() == session.AdminsNone {
		wrong = append(wrong, *session.AdminsNone.Refuse(true))
	}
	wrong = append(wrong, m.config.Queue.Check(ctx, spec.WithDefaults(), info)...)
	if slices.ContainsFunc(wrong, func(e session.FieldError) bool { return strings.HasSuffix(e.Field, ".source") }) {
		return wrong
	}
	for i, mount := range spec.Mounts {
		if mount.Folder != "" {
			continue
		}
		if e := m.config.Folders.CheckSource(owner, mount.Source); e != nil {
			e.Field = fmt.Sprintf("mounts[%d].source", i)
			wrong = append(wrong, *e)
		}
	}
	return wrong
}

func (m *Sessions) Preview(ctx context.Context,
	owner string, spec session.Spec, count int) (session.Preview, error) {
	owner = cmp.Or(owner, m.config.Owner)
	spec, mounted, missing, err := m.config.Folders.Find(owner, spec)
	if err != nil {
		return session.Preview{}, err
	}
	full := spec.WithDefaults()
	p := session.Preview{Spec: full, Folders: mounted, Errors: slices.Concat(m.check(ctx, owner, spec), missing,
		m.config.People.Check(owner, full)), Warnings: advise(full)}
	live, books, err := m.config.Records.Live()
	if err != nil {
		return p, err
	}
	count = min(max(count, 1), session.MostLaunches)
	for i := range count {
		name := session.Numbered(spec.Name, "-", i, count)
		if slices.ContainsFunc(live, func(s session.Session) bool { return s.Name == name && s.Owner == owner }) {
			p.Errors = append(p.Errors, session.NameTaken(name, ""))
			break
		}
	}
	depends, wrong := m.config.Queue.Dependencies(owner, spec.After)
	p.Errors = append(p.Errors, wrong...)
	if !m.config.Health.State().Up {
		p.Wait = m.config.Health.Wait()
		return p, nil
	}
	if queue.Plannable(full) {
		would := make([]session.Session, count)
		for i := range would {
			would[i] = m.newSession(session.LaunchRequest{Owner: owner, Spec: full})
			would[i].Name, would[i].DependsOn = session.Numbered("this session", " ", i, len(would)), depends
		}
		if err := m.config.Queue.Preview(ctx, &p, would, live, books); err != nil {
			return p, err
		}
	}
	err = m.config.Images.Preview(ctx, &p)
	return p, err
}

func advise(spec session.Spec) []session.FieldError {
	var advice []session.FieldError
	if r := spec.Resources; r.Memory-r.Shm < 2*r.Shm && r.Shm > 64*gpu.MiB {
		advice = append(advice, session.Fault("resources.shm", session.KindRange, session.Say("shmLarge")))
	}
	if len(spec.Mounts) == 0 && !spec.KeepsHome() {
		advice = append(advice, session.FieldError{Field: "mounts", Kind: session.KindRequired,
			Message: "No folder is mounted.", Hint: "The session's home is deleted when it ends."})
	}
	return advice
}

// Launch implements [session.Sessions]. Replicas of a service are launched by the service.
func (m *Sessions) Launch(ctx context.Context, req session.LaunchRequest) (session.Session, error) {
	if req.Spec.Type == session.Inference {
		return session.Session{}, session.Refused(session.CodeInvalid, session.FieldError{Field: "type",
			Kind: session.KindConflict, Message: "An inference session is launched by its service.",
			Hint: "Create a service: slipway service create."})
	}
	return m.launch(ctx, req, false)
}

// LaunchReplica launches a replica of a service.
func (m *Sessions) LaunchReplica(ctx context.Context, req session.LaunchRequest) (session.Session, error) {
	return m.launch(ctx, req, false)
}

// CheckReplica returns what is wrong with the spec of a replica.
func (m *Sessions) CheckReplica(ctx context.Context,
	owner string, spec session.Spec) ([]session.FieldError, error) {
	spec, _, missing, err := m.config.Folders.Find(owner, spec)
	if err != nil {
		return nil, err
	}
	return slices.Concat(m.check(ctx, owner, spec), missing, m.config.People.Check(owner, spec.WithDefaults()),
		m.config.Images.Check(ctx, spec.Image)), nil
}

// launch stores a launch. The session is held if it is launched in place of another agent's that still waits.
func (m *Sessions) launch(ctx context.Context, req session.LaunchRequest, held bool) (session.Session, error) {
	tags, err := session.CleanTags(req.Tags)
	if err != nil {
		return session.Session{}, err
	}
	req.Owner = cmp.Or(req.Owner, m.config.Owner)
	spec, mounted, missing, err := m.config.Folders.Find(req.Owner, req.Spec)
	if err != nil {
		return session.Session{}, err
	}
	req.Spec = spec
	depends, unknown := m.config.Queue.Dependencies(req.Owner, req.Spec.After)
	wrong := slices.Concat(m.check(ctx, req.Owner, spec), missing,
		m.config.People.Check(req.Owner, spec.WithDefaults()), unknown, m.config.Images.Check(ctx, spec.Image),
		req.Confidential.Check(spec))
	if len(wrong) > 0 && !m.launched(req) {
		return session.Session{}, session.Invalid(wrong)
	}
	mounted = m.config.Folders.WithCache(ctx, req.Owner, spec, mounted)
	named := req.Spec.Name != ""
	for try := 0; ; try++ {
		s := m.newSession(req)
		s.DependsOn, s.Folders, s.Tags = depends, mounted, tags
		s.Move = session.Move{Floats: req.Floats, From: req.From, Held: held}
		s.ID = m.config.Warm.Take(s)
		stored, err := m.keep(s, req)
		if session.CodeOf(err) == session.CodeNameTaken && !named && try < 20 {
			continue // a random name that is in use
		}
		if err != nil {
			return session.Session{}, err
		}
		m.config.Queue.Wake()
		return m.Dress(stored), nil
	}
}

// launched reports whether a launch succeeded before, so that its answer does not depend on fields that are now wrong.
func (m *Sessions) launched(req session.LaunchRequest) bool {
	if req.Key == "" {
		return false
	}
	_, found, err := m.config.Records.ByKey(req.Owner, req.Key)
	return err == nil && found
}

func (m *Sessions) newSession(req session.LaunchRequest) session.Session {
	return records.NewSession(req, m.config.NewID(req), m.config.Agent, m.config.Clock.Now().UTC())
}

// keep stores a session, and first what is confidential of its launch, so that no crash leaves one without it.
func (m *Sessions) keep(s session.Session, req session.LaunchRequest) (session.Session, error) {
	if err := m.config.Confidential.Put(s.ID, req.Confidential); err != nil {
		return s, err
	}
	stored, err := m.create(s, req.Key)
	if err != nil || stored.ID != s.ID || stored.Status.Terminal() {
		m.config.Confidential.Drop(s.ID)
		m.config.Warm.Return(s.ID)
	}
	return stored, err
}

// create stores a session with the first row of its history, or returns the one that was stored under the key.
func (m *Sessions) create(s session.Session, key string) (session.Session, error) {
	fresh := true
	err := m.config.Records.Update(func(tx *store.Tx) error {
		fresh = true
		if key != "" {
			known, found, err := tx.ByKey(s.Owner, key)
			if err != nil {
				return err
			}
			if found {
				s, fresh = known, false
				return nil
			}
		}
		if tx.LiveOf(s.Owner) >= MostLive {
			message := fmt.Sprintf("%d of your sessions have not ended.", MostLive)
			return session.NewError(session.CodeTooManySessions, message, "Terminate some of them first.")
		}
		if err := folders.StillThere(tx, s); err != nil {
			return err
		}
		for _, id := range s.DependsOn { // one that was moved away meanwhile
			if _, err := tx.Get(id); err != nil {
				return err
			}
		}
		return records.Create(tx, &s, key)
	})
	if err == nil && fresh {
		m.config.Records.Tell([]session.Session{s})
	}
	return s, err
}

func (m *Sessions) Get(_ context.Context, id session.ID) (session.Session, error) {
	s, err := m.config.Records.Get(id)
	return m.Dress(s), err
}

func (m *Sessions) List(_ context.Context, filter session.Filter) ([]session.Session, error) {
	list, err := m.config.Records.List(filter)
	for i := range list {
		list[i] = m.Dress(list[i])
	}
	return list, err
}

// Rename implements [session.Sessions]. It fails with session_update_invalid, session_update_conflict if the session
// has ended, or session_create_already-exists.
func (m *Sessions) Rename(_ context.Context, id session.ID, name string) (session.Session, error) {
	if wrong := session.SessionNames.Check(name); wrong != nil {
		return session.Session{}, session.Refused(session.CodeSessionInvalid, *wrong)
	}
	return m.config.Records.Change(id, func(d *records.Draft) error {
		if !d.Status.Live() {
			return session.NewError(session.CodeSessionConflict, "The session has ended.",
				"Only a live session can be renamed.")
		}
		d.Name = name
		return nil
	})
}

func (m *Sessions) SetTags(_ context.Context, id session.ID, tags []string) (session.Session, error) {
	clean, err := session.CleanTags(tags)
	if err != nil {
		return session.Session{}, err
	}
	return m.config.Records.Change(id, func(d *records.Draft) error {
		d.Tags = clean
		return nil
	})
}

func (m *Sessions) Terminate(ctx context.Context, id session.ID, forced bool) (session.Session, error) {
	reason := session.ReasonUser
	if forced {
		reason = session.ReasonForced
	}
	s, err := m.config.Launch.Terminate(id, reason, forced)
	if err == nil && forced && s.KeepsContainer() {
		return m.config.Images.DropKept(ctx, id)
	}
	return s, err
}

// History implements [session.Sessions]. The running phase has its present steps.
func (m *Sessions) History(_ context.Context, id session.ID) ([]session.Phase, error) {
	phases, err := m.config.Records.History(id)
	if err != nil || len(phases) == 0 {
		return phases, err
	}
	last := &phases[len(phases)-1]
	if last.Result != session.OutcomeRunning {
		return phases, nil
	}
	if wait := m.config.Queue.Wait(id); wait != nil && last.Phase == session.PhaseSchedule {
		last.Steps = queue.WaitSteps(*last, wait)
	}
	if steps := m.config.Launch.Steps(id); len(steps) > 0 {
		last.Steps = steps
	}
	return phases, nil
}

// Dress adds to a stored session what is known but not stored.
func (m *Sessions) Dress(s session.Session) session.Session {
	switch s.Status {
	case session.Pending:
		s.Wait = m.config.Queue.Wait(s.ID)
	case session.Pulling:
		s.Pull = m.config.Launch.Pull(s.ID)
	case session.Running:
		s.Idle = m.config.Idle.Checks(s.ID)
	}
	return s
}

// PurgeSlack is how many records above the limit start a purge, so that purges are rare. One removes at most purgeMost.
const (
	PurgeSlack = 100
	purgeMost  = 1000
)

func (m *Sessions) Purge() error {
	count, err := m.config.Records.Finished()
	if err != nil || count < m.config.KeepFinished+PurgeSlack {
		return err
	}
	surplus, err := m.config.Records.Surplus(m.config.KeepFinished, purgeMost)
	if err != nil || len(surplus) == 0 {
		return err
	}
	var removed []session.Session
	err = m.config.Records.Update(func(tx *store.Tx) (err error) {
		removed, err = tx.Purge(surplus)
		return err
	})
	if err != nil {
		return err
	}
	for _, s := range removed {
		m.config.Removed(s)
	}
	return nil
}
