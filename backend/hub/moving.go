package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"slipway/backend/pace"
	"slipway/backend/session"
)

// moving is a relocation under way.
type moving struct {
	*relocations
	work   *Work
	record *relocation
	at     *located
}

func (m *moving) run(ctx context.Context) error {
	if err := m.save(*m.record, true); err != nil {
		return err
	}
	m.plan()
	err := m.forward(ctx)
	switch {
	case err != nil && ctx.Err() != nil && !m.work.cancelled():
		return err // the next hub continues
	case err == nil, m.record.Stage >= stageClear && m.record.Stage != stageBack:
		return errors.Join(err, m.save(*m.record, false))
	}
	return m.back(m.operations.life(), err)
}

func (m *moving) plan() {
	steps := []Step{{Name: "look", Title: "Look at both machines"}}
	each := func(step, title string) {
		for i, f := range m.record.Folders {
			steps = append(steps, Step{Name: fmt.Sprint(step, i), Title: fmt.Sprintf(title, f.Name)})
		}
	}
	copies := m.record.Copy != ""
	while := " while the session runs"
	if m.record.Parked {
		while = ""
	}
	if m.record.Commit != "" {
		steps = append(steps, Step{Name: "park", Title: "Make an image of it while it runs"})
	}
	each("sync-", "Copy %s"+while)
	if !copies {
		steps = append(steps, Step{Name: "park", Title: "Stop it, and keep it"})
		each("rest-", "Copy what has changed in %s")
	}
	if m.record.From != m.record.To {
		steps = append(steps, Step{Name: "describe", Title: "Look at its image"},
			Step{Name: "send", Title: "Send what is missing of it"}, Step{Name: "install", Title: "Put it together"})
	}
	steps = append(steps, Step{Name: "launch", Title: "Launch it on " + m.record.To})
	if !copies {
		steps = append(steps, Step{Name: "clear", Title: "Delete what is left on " + m.record.From})
	}
	m.work.Plan(steps...)
}

// forward does all stages that are left.
func (m *moving) forward(ctx context.Context) error {
	if m.record.Stage == stageBack {
		return m.record.Why
	}
	if err := m.look(ctx); err != nil {
		return err
	}
	stages := []func(context.Context) error{stageSync: m.sync, stagePark: m.park, stageRest: m.rest,
		stageImage: m.sendImage, stageLaunch: m.launch, stageClear: m.clear}
	if m.record.Copy != "" { // for its image, notebooks in its home are completed
		stages[stageSync], stages[stagePark] = m.commit, m.sync
		stages[stageRest], stages[stageClear] = m.nothing, m.clearCopy
	}
	for _, one := range stages[m.record.Stage:] {
		if err := one(ctx); err != nil {
			return err
		}
		m.record.Stage++
		if err := m.save(*m.record, true); err != nil {
			return err
		}
	}
	return nil
}

// look finds the session and the machines again.
func (m *moving) look(ctx context.Context) error {
	return m.work.Do("look", "", func() (string, error) {
		l := m.launches
		from, unknown := l.member(m.record.From)
		to, err := l.member(m.record.To)
		if err := cmp.Or(unknown, err); err != nil {
			return "", err
		}
		m.at = &located{from: from, to: to, record: m.record}
		return "", m.refresh(ctx, "look")
	})
}

// refresh reads the session as it is on the first machine.
func (m *moving) refresh(ctx context.Context, step string) (err error) {
	m.at.session, err = answered(ctx, &retries{work: m.work, step: step}, func() (session.Session, error) {
		return m.at.from.Agent.Get(ctx, m.record.Session)
	})
	if err == nil { // a hub that has just begun knows it as the one before did: alive, and with its name
		m.launches.learn(m.at.from, m.at.session)
	}
	kept := m.record.Stage >= stageRest && m.record.Stage != stageBack && m.record.Copy == ""
	if err == nil && kept && !m.at.session.Continuable() {
		err = session.NewError(session.CodeSessionConflict, m.record.Name+" is not kept on "+m.record.From+" any more.",
			"Look at its history.")
	}
	return err
}

func (m *moving) sync(ctx context.Context) error { return m.copyAll(ctx, "sync-", false) }

func (m *moving) rest(ctx context.Context) error {
	if err := m.refresh(ctx, "rest-0"); err != nil {
		return err
	}
	return m.copyAll(ctx, "rest-", true)
}

// copyAll copies the folders. Those that the move makes become as they are at the source; to others, files are added,
// and those that the first pass has brought are replaced in the last.
func (m *moving) copyAll(ctx context.Context, step string, last bool) error {
	for i, one := range m.record.Folders {
		c := m.copyOf(m.at, i)
		c.work, c.step = m.work, fmt.Sprint(step, i)
		found, err := m.thereAs(ctx, c, one.Name)
		switch {
		case err == nil:
			c.to.place = session.Place{Folder: found.ID}
		case session.CodeOf(err) == session.CodeFolderNotFound:
			c.creates.Name = one.Name
		default:
			return err
		}
		c.copyRule = copyRule{replace: one.Fresh || last, mirror: one.Fresh, live: !last}
		c.creates.made = func(id session.FolderID) error {
			m.record.Folders[i].Made = id
			return m.save(*m.record, true)
		}
		if err := c.do(ctx, c.step, func() (string, error) { return m.carry(ctx, c) }); err != nil {
			return err
		}
	}
	return nil
}

// thereAs finds a folder of the other machine.
func (m *moving) thereAs(ctx context.Context, c *fileCopy, name string) (session.Folder, error) {
	return until(ctx, c, func() (session.Folder, error) {
		_, f, err := m.transfers.folders.findFolder(ctx, name, m.at.to.Name())
		return f, err
	})
}

// park ends the session on the first machine, and waits until its image is made.
func (m *moving) park(ctx context.Context) error {
	return m.work.Do("park", "", func() (string, error) {
		r := &retries{work: m.work, step: "park"}
		ask := func() (session.Session, error) {
			return m.endings.asked(m.at.from, m.record.Session)(m.at.from.Agent.Park(ctx, m.record.Session))
		}
		for {
			s, err := answered(ctx, r, ask)
			switch {
			case err != nil:
				return "", err
			case s.Continuable():
				m.at.session = s
				m.launches.learn(m.at.from, s) // its name is free now
				return s.EndImage.Size.String() + " of changes", nil
			case s.Status.Terminal():
				return "", m.notKept(s)
			}
			if i := s.EndImage; i != nil && i.Size > 0 {
				m.work.Tell(Step{Name: "park", State: StepRunning, Detail: i.Size.String() + " of changes"})
			}
			ask = func() (session.Session, error) { return m.at.from.Agent.Get(ctx, m.record.Session) }
			if err := pace.Wall().Pause(ctx, lookEvery); err != nil {
				return "", err
			}
		}
	})
}

func (m *moving) notKept(s session.Session) error {
	if s.EndImage == nil || s.EndImage.Error == nil {
		return session.NewError(session.CodeSessionConflict, s.Name+" ended before it could be moved.",
			"Look at its history.")
	}
	return session.NewError(s.EndImage.Error.Code, fmt.Sprintf("%s was stopped, and no image could be made of it: %s",
		s.Name, s.EndImage.Error.Message), fmt.Sprintf("Its container is kept on %s. Commit it to try again: slipway "+
		"commit %s %s", m.record.From, s.ID, s.EndImage.Name))
}

func (m *moving) sendImage(ctx context.Context) error {
	image := m.imageRef()
	if m.at.from == m.at.to {
		m.record.Image = image
		return nil
	}
	s := &sending{retries: retries{work: m.work, step: "send"}, image: image, from: m.at.from, to: m.at.to}
	if err := s.run(ctx); err != nil {
		return err
	}
	m.record.Image = locked(m.launches.shared, func() string { return m.work.operation.Image })
	return nil
}

// launch launches the next session, and waits until it runs.
func (m *moving) launch(ctx context.Context) error {
	return m.work.Do("launch", "", func() (string, error) {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		r := &retries{work: m.work, step: "launch"}
		next, err := answered(ctx, r, func() (session.Session, error) {
			return m.launchNext(m.operations.life()) // so that what was launched is known
		})
		if err != nil {
			return "", err
		}
		m.record.Next = next.ID
		if err := m.save(*m.record, true); err != nil {
			return "", err
		}
		for ; next.Status != session.Running; err = pace.Wall().Pause(ctx, lookEvery) {
			if err != nil {
				return "", err
			}
			if next, err = answered(ctx, r, func() (session.Session, error) {
				return m.at.to.Agent.Get(ctx, m.record.Next)
			}); err != nil {
				return "", err
			}
			detail := string(next.Status)
			if next.Wait != nil {
				detail = next.Wait.Message
			}
			m.work.Tell(Step{Name: "launch", State: StepRunning, Detail: detail})
			if next.Status.Terminal() {
				return "", endedThere(next, m.record.To)
			}
		}
		m.launches.learn(m.at.to, next)
		return "", nil
	})
}

func endedThere(s session.Session, agent string) error {
	if s.Error != nil {
		return session.NewError(s.Error.Code, s.Error.Message, s.Error.Hint)
	}
	return session.NewError(session.CodeSessionConflict, fmt.Sprintf("It ended on %s as %s.", agent, s.Reason),
		"Look at its history.")
}

// launchNext launches the next session. Its key makes that happen once.
func (m *moving) launchNext(ctx context.Context) (session.Session, error) {
	spec := m.at.session.With(m.record.Image, session.Mount{Folder: m.record.Folders[0].Name})
	spec.Name, spec.Agent = cmp.Or(m.record.Copy, spec.Name), m.record.To
	related := kin{before: m.record.Session}
	if m.record.Copy != "" {
		related = kin{}
	}
	for i := range spec.Mounts {
		mount := &spec.Mounts[i]
		if session.MountTarget(*mount) == session.Home {
			continue
		}
		of := m.folderOf(*mount)
		for _, f := range m.record.Folders {
			if f.Folder == of {
				mount.Folder = f.Name
			}
		}
	}
	req := LaunchRequest{Key: m.record.Key, Spec: spec}
	s, err := m.launches.launch(ctx, req, related)
	if err == nil && m.record.Next == "" {
		m.launches.addRecent(ctx, req, 1, s)
	}
	return s, err
}

// folderOf is the id of the folder that a mount of the session names.
func (m *moving) folderOf(mount session.Mount) session.FolderID {
	i := slices.IndexFunc(m.at.session.Folders,
		func(f session.FolderMount) bool { return f.Target == session.MountTarget(mount) })
	if i < 0 {
		return ""
	}
	return m.at.session.Folders[i].Folder
}

// clear asks whether what is left on the first machine is deleted. Without an answer it stays.
func (m *moving) clear(ctx context.Context) error {
	home := m.at.session.HomeFolder()
	m.work.Begin("clear", "")
	m.work.change(func(one *operation) { one.Progress = nil })
	left := "image "
	if len(m.leftImages()) > 1 {
		left = "images "
	}
	answer, err := m.work.Ask(ctx, Prompt{Kind: PromptConfirm, Text: fmt.Sprintf("%s runs on %s. Permanently delete "+
		"what is left on %s, the folder %s and the %s?", m.record.Name, m.record.To, m.record.From, home.Name,
		left+strings.Join(m.leftImages(), " and "))})
	if err != nil && session.CodeOf(err) != session.CodeOperationTimeout && !m.work.cancelled() {
		return err // the next hub asks again
	}
	if err != nil || answer != "yes" { // the session has moved, whatever becomes of the question
		m.work.Tell(Step{Name: "clear", State: StepSkipped, Detail: "It stays."})
		return nil
	}
	if err := m.delete(ctx, home.Folder); err != nil {
		e := session.AsError(err, session.CodeOperationFailed)
		m.work.Tell(Step{Name: "clear", State: StepWarning, Detail: e.Message, Remedy: e.Hint})
		return nil
	}
	m.work.Tell(Step{Name: "clear", State: StepOK})
	return nil
}

// leftImages are the images on the first machine that only the session needs: its own, and the one with which it came.
func (m *moving) leftImages() []string {
	refs := []string{m.at.session.EndImage.Ref}
	if before := m.at.session.Inherited(); before != "" {
		refs = append(refs, before)
	}
	return refs
}

func (m *moving) delete(ctx context.Context, home session.FolderID) error {
	agent, r := m.at.from.Agent, &retries{work: m.work, step: "clear"}
	all := []func() error{
		func() error { _, err := agent.TrashFolder(ctx, home); return err },
		func() error { return agent.DeleteFolder(ctx, home) },
	}
	for _, ref := range m.leftImages() {
		all = append(all, func() error { return agent.RemoveImage(ctx, ref) })
	}
	for _, do := range all {
		if _, err := answered(ctx, r, func() (struct{}, error) { return struct{}{}, do() }); err != nil && !gone(err) {
			return err
		}
	}
	return nil
}

// back continues the session where it was, if it does not run there any more, and returns why.
func (m *moving) back(ctx context.Context, why error) error {
	m.record.Stage, m.record.Why = stageBack, session.AsError(why, session.CodeOperationFailed)
	m.record.Drop = m.record.Drop || m.record.Copy != "" || m.work.cancelled()
	if err := m.save(*m.record, true); err != nil {
		return errors.Join(why, err) // the next hub continues with what the shelf has
	}
	var err error
	if m.at == nil {
		err = m.look(ctx)
	}
	if err == nil {
		err = m.work.Do("back", "Go on where it was", func() (string, error) { return m.goBack(ctx) })
	}
	if err == nil && m.record.Drop {
		m.drop(ctx)
	}
	if ctx.Err() != nil {
		return ctx.Err() // the next hub continues
	}
	if err = errors.Join(err, m.save(*m.record, false)); err != nil {
		m.launches.log.Error("a move did not end well", "session", m.record.Session, "error", err)
	}
	return why
}

func (m *moving) goBack(ctx context.Context) (detail string, err error) {
	r := &retries{work: m.work, step: "back"}
	if err := m.endNext(ctx, r); err != nil || m.record.Copy != "" {
		return m.record.Name + " stays as it is on " + m.record.From, err
	}
	if err := m.refresh(ctx, "back"); err != nil {
		return "", err
	}
	switch s := m.at.session; {
	case m.record.Parked:
		return m.record.Name + " is kept on " + m.record.From, nil
	case !s.Parked:
		return m.record.Name + " runs on " + m.record.From, nil
	case !s.Continuable():
		if err := m.park(ctx); err != nil {
			return "", err
		}
	}
	_, err = answered(ctx, r, func() (session.Session, error) {
		return m.launches.Continue(ctx, string(m.record.Session))
	})
	if err != nil && session.CodeOf(err) != session.CodeNameTaken { // else an earlier hub did it
		return "", err
	}
	return m.record.Name + " is launched again on " + m.record.From, nil
}
