package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"slipway/backend/session"
)

// Launched is the outcome of one of several launches: a session or an error.
type Launched struct {
	Session session.Session
	Err     error
}

// launches chooses the agents for launches, launches there, adds launches to the recents, and returns recipes.
type launches struct {
	*finder
	person  *person
	secrets *secrets
	images  *images
	folders *folders
	claimed []*nameClaim // guarded by mu
	// choosing is held while a choice of a machine is stored.
	choosing sync.Mutex
}

// LaunchRequest launches one session. With a key it can be sent again safely.
type LaunchRequest struct {
	Key  string       `json:"key,omitempty"`
	Spec session.Spec `json:"spec"`
	// Owner is the person for whom an admin launches it; empty: the hub's owner
	Owner string `json:"owner,omitempty"`
}

// Launch launches a session and adds it to the recents. A repeated request with the same key returns the same session.
func (l *launches) Launch(ctx context.Context, req LaunchRequest) (session.Session, error) {
	s, err := l.launch(ctx, req, kin{})
	if err != nil {
		return session.Session{}, err
	}
	l.addRecent(ctx, req, 1, s)
	return s, nil
}

// kin are the sessions that belong to one that is launched.
type kin struct {
	together session.ID // of all sessions of one launch; empty: it is alone
	before   session.ID // the one that it continues; empty: none
}

// Continue launches a session again that was parked, by its id, or by the name of the one that was parked last. It
// fails like [Hub.Get] and [Hub.Launch], and with session_update_conflict for one that cannot be continued.
func (l *launches) Continue(ctx context.Context, ref string) (session.Session, error) {
	m, id, err := l.findParked(ctx, ref)
	if err != nil {
		return session.Session{}, err
	}
	s, err := m.Agent.Get(ctx, id) // with the values of its variables
	if err != nil {
		return session.Session{}, err
	}
	if !s.Continuable() {
		return session.Session{}, session.NewError(session.CodeSessionConflict,
			fmt.Sprintf("%s was not stopped in such a way that it can be continued.", s.Name), "Launch it again.")
	}
	req := LaunchRequest{Spec: s.Continued(), Owner: locked(l.shared, func() string { return l.personAt(m, s.Owner) })}
	req.Spec.Agent = m.Name()
	next, err := l.launch(ctx, req, kin{before: id})
	if err == nil {
		l.addRecent(ctx, req, 1, next)
	}
	return next, err
}

// findParked is find, but if there is no such live session, a name is that of the session that was parked last.
func (l *launches) findParked(ctx context.Context, ref string) (*member, session.ID, error) {
	m, id, err := l.find(ctx, ref)
	if last := locked(l.shared, func() *reported { return l.parkedLast(ref) }); err != nil && last != nil {
		return last.member, last.session.ID, nil
	}
	return m, id, err
}

// parkedLast returns the newest session of a name that was parked. The caller holds mu.
func (l *launches) parkedLast(name string) (last *reported) {
	for _, k := range l.sessions {
		if s := k.session; s.Name == name && s.Continuable() && !l.hidden(s) &&
			(last == nil || last.session.CreatedAt.Before(s.CreatedAt)) {
			last = k
		}
	}
	return last
}

// ServeFolder returns the live system session that serves a folder by sftp, launched if there is none. It fails like
// [Hub.FindFolder] and [Hub.Launch].
func (l *launches) ServeFolder(ctx context.Context, ref, agent string) (session.Session, error) {
	m, f, err := l.folders.findFolder(ctx, ref, agent)
	if err != nil {
		return session.Session{}, err
	}
	live, err := l.listOf(ctx, m, session.Filter{Live: true})
	if err != nil {
		return session.Session{}, err
	}
	serves := func(s session.Session) bool {
		return s.Spec.Type == session.System && s.Owner == f.Owner && s.Status != session.Terminating &&
			slices.ContainsFunc(s.Folders, func(m session.FolderMount) bool { return m.Folder == f.ID })
	}
	if i := slices.IndexFunc(live, serves); i >= 0 {
		return live[i], nil
	}
	spec := session.Spec{Name: "sftp-" + f.Name, Type: session.System, Mounts: []session.Mount{{Folder: f.Name}}}
	spec.Agent = m.Name()
	if session.SessionNames.Check(spec.Name) != nil {
		spec.Name = ""
	}
	s, err := l.launch(ctx, LaunchRequest{Spec: spec, Owner: f.Owner}, kin{})
	if session.CodeOf(err) == session.CodeNameTaken {
		spec.Name = ""
		s, err = l.launch(ctx, LaunchRequest{Spec: spec, Owner: f.Owner}, kin{})
	}
	return s, err
}

// launch launches one session, or returns the one that was launched with its key, wherever it was moved since.
func (l *launches) launch(ctx context.Context, req LaunchRequest, kin kin) (session.Session, error) {
	req.Spec = l.withSettings(req.Spec)
	m, err := l.agentFor(ctx, req)
	if err != nil {
		return session.Session{}, err
	}
	s, err := l.launchAt(ctx, m, req, kin)
	if code := session.CodeOf(err); code == session.CodeSessionConflict || code == session.CodeNameTaken {
		if to, moved := l.launchedWith(ctx, req); to != nil {
			m, s, err = to, moved, nil
		}
	}
	if err != nil {
		return session.Session{}, err
	}
	if !l.settle(s.ID, m) {
		return session.Session{}, strange(m, "session")
	}
	l.learn(m, s)
	return s, nil
}

// launchedWith asks all machines for the session that was launched with the key of a request. It returns nil if none
// that answers has it.
func (l *launches) launchedWith(ctx context.Context, req LaunchRequest) (*member, session.Session) {
	if req.Key == "" {
		return nil, session.Session{}
	}
	members := l.list()
	found, _ := askAll(ctx, members, func(ctx context.Context, m *member) (session.Session, error) {
		return l.launchedAt(ctx, m, req)
	})
	for _, held := range []bool{false, true} { // one that is held takes the place of another
		if i := slices.IndexFunc(found, func(s session.Session) bool { return s.Key != "" && s.Held == held }); i >= 0 {
			return members[i], found[i]
		}
	}
	return nil, session.Session{}
}

// launchedAt asks one machine for the session that was launched with the key of a request, which has no id if
// there is none.
func (l *launches) launchedAt(ctx context.Context, m *member, req LaunchRequest) (session.Session, error) {
	owner, err := l.ownerAt(ctx, m, req.Owner)
	if err != nil {
		return session.Session{}, err
	}
	owner = cmp.Or(owner, locked(l.shared, func() string { return m.machine.Owner }))
	list, err := m.Agent.List(ctx, session.Filter{Owner: owner, Key: req.Key, Limit: 1})
	if err != nil || len(list) == 0 || list[0].Key != req.Key { // which an older agent does not know
		return session.Session{}, err
	}
	return list[0], nil
}

// launchAt launches one session at an agent.
func (l *launches) launchAt(ctx context.Context, m *member, req LaunchRequest, kin kin) (session.Session, error) {
	owner, err := l.ownerAt(ctx, m, req.Owner)
	if err != nil {
		return session.Session{}, err
	}
	release, err := l.claimName(m, owner, req.Spec.Name)
	if err != nil {
		return session.Session{}, err
	}
	defer release()
	confidential, err := l.secrets.confidential(ctx, req.Spec)
	if err != nil {
		return session.Session{}, err
	}
	// an agent on another machine decides ByAdmin itself
	launch := session.LaunchRequest{Key: req.Key, Owner: owner, Spec: req.Spec, ByAdmin: true,
		Launch: kin.together, From: kin.before, Confidential: confidential}
	if req.Spec.Agent == "" {
		launch.Floats = &session.Floats{Group: req.Spec.Group}
	}
	s, err := m.Agent.Launch(ctx, launch)
	if err == nil && len(s.Spec.Secrets) != len(req.Spec.Secrets) {
		_, ended := m.Agent.Terminate(ctx, s.ID, true)
		err = errors.Join(session.NewError(session.CodeAgentUnsupported,
			"The agent of "+m.Name()+" is too old to start sessions with secrets.",
			"Upgrade it: slipway agent upgrade "+m.Name()), ended)
	}
	return s, err
}

// withSettings fills in what the person's settings choose.
func (l *launches) withSettings(spec session.Spec) session.Spec {
	keep, err := session.ParseDuration(l.person.Settings().KeepHome)
	if spec.KeepHome == nil && err == nil && keep > 0 {
		spec.KeepHome = &keep
	}
	return spec
}

// learn stores a session that an agent has returned, since its name counts before its event arrives, and the connection
// to another machine may be lost before.
func (f *finder) learn(m *member, s session.Session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.sessions[s.ID]
	switch {
	case m.gone || known != nil && known.session.Revision >= s.Revision:
	case m.remote == nil:
		f.put(m, s)
	default:
		m.dirty = true
		f.tell(m, s)
	}
}

// LaunchMany launches count sessions of one spec in the order of their numbers, which are added to its name. An invalid
// spec launches none; otherwise each launch has its own outcome. A repeated request with the same key returns the
// sessions of the first and launches those that failed.
func (l *launches) LaunchMany(ctx context.Context, req LaunchRequest, count int) ([]Launched, error) {
	if count < 1 || count > session.MostLaunches {
		return nil, session.Invalid([]session.FieldError{{Field: "count", Kind: session.KindRange,
			Message: fmt.Sprintf("%d is not between 1 and %d sessions.", count, session.MostLaunches),
			Hint:    "Launch more after these."}})
	}
	if err := l.checkMany(ctx, req.Owner, req.Spec, count); err != nil {
		return nil, err
	}
	outcomes := make([]Launched, count)
	remembered := false
	var together session.ID
	if count > 1 {
		together = session.NewID()
	}
	for i := range outcomes {
		one := LaunchRequest{Key: session.Numbered(req.Key, "/", i, count), Spec: req.Spec, Owner: req.Owner}
		one.Spec.Name = session.Numbered(req.Spec.Name, "-", i, count)
		s, err := l.launch(ctx, one, kin{together: together})
		outcomes[i] = Launched{Session: s, Err: err}
		if err != nil {
			continue
		}
		together = cmp.Or(s.Launch, together) // that of the first request, if this one repeats it
		if !remembered {
			l.addRecent(ctx, req, count, s)
			remembered = true
		}
	}
	return outcomes, nil
}

// checkMany checks all but the free name, since on a repeated request it is taken by the request's own session.
func (l *launches) checkMany(ctx context.Context, owner string, spec session.Spec, count int) error {
	var wrong []session.FieldError
	if name := session.Numbered(spec.Name, "-", count-1, count); name != "" {
		if e := session.SessionNames.Check(name); e != nil {
			wrong = append(wrong, *e)
		}
	}
	spec.Name = ""
	p, err := l.Preview(ctx, owner, spec, 1)
	if err != nil {
		return err
	}
	wrong = append(wrong, p.Errors...)
	if len(wrong) == 0 {
		return nil
	}
	return session.Invalid(wrong)
}

// addRecent puts a launch on top of the history. It only logs if that cannot be saved.
func (l *launches) addRecent(ctx context.Context, req LaunchRequest, count int, first session.Session) {
	entry := Recent{ID: newID(), Name: cmp.Or(req.Spec.Name, first.Name),
		Spec: l.again(ctx, req.Spec), Owner: req.Owner, LaunchedAt: l.now(), Session: first.ID, Count: count}
	err := l.person.changeRecents(func(recents []Recent) ([]Recent, error) { return pushRecent(recents, entry), nil })
	if err != nil {
		l.log.Error("the launch history is not saved", "error", err)
	}
}

// again returns a spec as it is stored for another launch: without secrets, and with the names of the sessions that it
// waits for, since an id is of one run and means nothing on another machine. Unknown ids stay.
func (l *launches) again(ctx context.Context, spec session.Spec) session.Spec {
	spec = spec.Redacted("")
	spec.After = slices.Clone(spec.After)
	for i, ref := range spec.After {
		if !session.ValidID(ref) {
			continue
		}
		if s, _, err := l.Get(ctx, ref); err == nil {
			spec.After[i] = s.Name
		}
	}
	return spec
}

// Recipe is the spec of a session or launch, prepared to be launched again.
type Recipe struct {
	Name   string
	Spec   session.Spec // without the values of secret-looking variables; its image pinned by digest where one is known
	Pinned bool
	Passed *time.Time // start time that is left out because it has passed
	Sbatch string     // the script that Slurm is given for it; empty: its machine has no Slurm, or is not reached
}

// SessionRecipe returns the recipe of a session, by id or by the name of a live one. It fails like [Hub.Get].
func (l *launches) SessionRecipe(ctx context.Context, ref string) (Recipe, error) {
	s, _, err := l.Get(ctx, ref)
	if err != nil {
		return Recipe{}, err
	}
	return l.recipe(ctx, s.Name, s.Spec, s.Pinned, s.Agent), nil
}

// RecentRecipe returns the recipe of an entry of the launch history. It fails with recipe_read_not-found.
func (l *launches) RecentRecipe(ctx context.Context, id string) (Recipe, error) {
	recents := l.person.Recents()
	i := slices.IndexFunc(recents, func(r Recent) bool { return r.ID == id })
	if i < 0 {
		return Recipe{}, recentNotFound(id)
	}
	r := recents[i]
	pinned, agent := "", r.Spec.Agent
	if s, _, err := l.Get(ctx, string(r.Session)); r.Session != "" && err == nil {
		pinned, agent = s.Pinned, cmp.Or(agent, s.Agent)
	}
	return l.recipe(ctx, r.Name, r.Spec, pinned, agent), nil
}

// ServiceRecipe returns the recipe of what the replicas of a service run.
func (l *launches) ServiceRecipe(ctx context.Context, s session.Service) Recipe {
	return l.recipe(ctx, s.Name, s.Current(), "", s.Agent)
}

// recipe returns a recipe without a start time that has passed. Pinned is the image as it was used, if it was.
func (l *launches) recipe(ctx context.Context, name string, spec session.Spec, pinned, agent string) Recipe {
	spec = l.again(ctx, spec)
	var passed *time.Time
	if spec.NotBefore != nil && !spec.NotBefore.After(l.now()) {
		passed, spec.NotBefore = spec.NotBefore, nil
	}
	if pinned == "" {
		pinned = l.pinImage(ctx, spec.Image, agent)
	}
	spec.Image = pinned
	return Recipe{Name: name, Spec: spec, Pinned: session.ImageDigest(pinned) != "" || session.ValidImageID(pinned),
		Passed: passed, Sbatch: l.sbatch(ctx, spec, agent)}
}

// sbatch is the script that the Slurm of an agent is given for a spec.
func (l *launches) sbatch(ctx context.Context, spec session.Spec, agent string) string {
	spec.Agent, spec.Group = agent, ""
	m, _, _ := l.named(spec)
	if m == nil {
		return ""
	}
	l.mu.Lock()
	site := m.machine.Slurm
	l.mu.Unlock()
	if site == nil {
		return ""
	}
	p, err := l.ask(ctx, m, "", spec, 1)
	if err != nil {
		l.log.Warn("the script for Slurm is unknown", "agent", agent, "error", err)
	}
	return p.Sbatch
}

// pinImage returns the image by its digest on an agent, or on any if none is named, or ref if no agent has it.
func (l *launches) pinImage(ctx context.Context, ref, agent string) string {
	images, err := l.images.Images(ctx, agent)
	if err != nil {
		l.log.Warn("the images are not listed, so the recipe does not pin one", "agent", agent, "error", err)
		return ref
	}
	for _, image := range images {
		if slices.ContainsFunc(image.Refs, func(name string) bool { return session.SameImage(name, ref) }) {
			return session.PinImage(ref, image.Image)
		}
	}
	return ref
}
