package hub

import (
	"context"
	"strings"

	"slipway/backend/pace"
	"slipway/backend/session"
)

// relocatedCopy is what a relocation has that is a copy.
type relocatedCopy struct {
	Copy   string `json:"copy,omitempty"`   // the name of the copy; empty: it is a move
	Commit string `json:"commit,omitempty"` // names the image that is made for it; empty: a parked one has it
}

const copyPasses = 3 // over the files of a copy, as long as some of them change meanwhile

// toCopy makes a relocation a copy. A parked session is copied as it was kept.
func (r *relocations) toCopy(at *located, name string) error {
	if name == "" {
		name = r.copyName(at.session.Name)
	} else if wrong := session.SessionNames.Check(name); wrong != nil {
		return session.Invalid([]session.FieldError{*wrong})
	} else if machine := r.nameAt(name); machine != nil {
		return session.Refused(session.CodeNameTaken, session.NameTaken(name, machine.Name()))
	}
	at.record.Copy, at.record.Stage = name, stageSync
	if !at.record.Parked {
		at.record.Commit = at.session.ImageName(newID())
	}
	return nil
}

// copyName is a free name for a copy of a session.
func (r *relocations) copyName(of string) string {
	base := of[:min(len(of), session.SessionNames.Max-len("-copy-99"))] + "-copy"
	name := base
	for n := 2; r.nameAt(name) != nil; n++ {
		name = session.Numbered(base, "-", n-1, 0)
	}
	return name
}

// nameAt is the machine where the person has a live session of a name; nil: there is none.
func (r *relocations) nameAt(name string) *member {
	return locked(r.launches.shared, func() *member { return r.launches.nameAt("", name, nil) })
}

// carry copies a folder. A copy tries again what changed meanwhile, since no later stage does.
func (m *moving) carry(ctx context.Context, c *fileCopy) (detail string, err error) {
	for pass := 1; ; pass++ {
		c.copyCount = copyCount{}
		root, err := c.measure(ctx)
		if err != nil {
			return "", err
		}
		detail, err := c.carry(ctx, root)
		if err != nil || m.record.Copy == "" || c.changed == 0 || pass == copyPasses {
			return detail, err
		}
	}
}

func (m *moving) nothing(context.Context) error { return nil }

// imageRef is the image at the first machine that is sent.
func (m *moving) imageRef() string {
	if m.record.Commit != "" {
		return session.CommitRef(m.at.session.Owner, m.record.Commit)
	}
	return m.at.session.EndImage.Ref
}

// commit makes the image of a copy, unless it is there. The session keeps running.
func (m *moving) commit(ctx context.Context) error {
	if m.record.Commit == "" {
		return nil
	}
	m.work.Begin("park", "")
	for {
		if err := m.refresh(ctx, "park"); err != nil {
			return m.work.fail("park", err)
		}
		if !m.at.session.Parkable() {
			return m.work.fail("park", session.NewError(session.CodeSessionConflict,
				m.record.Name+" ended before it could be copied.", "Look at its history."))
		}
		begun, err := answered(ctx, &retries{work: m.work, step: "park"}, func() (session.ImageWork, error) {
			return m.at.from.Agent.CommitSession(ctx, m.record.Session, session.CommitRequest{Name: m.record.Commit})
		})
		switch session.CodeOf(err) {
		case session.CodeImageExists: // an earlier hub has made it
			m.work.Tell(Step{Name: "park", State: StepOK})
			return nil
		case session.CodeImageConflict: // another one is made of it, perhaps for an earlier hub
			m.work.Tell(Step{Name: "park", State: StepRunning, Detail: session.AsError(err, "").Message})
			if err := pace.Wall().Pause(ctx, lookEvery); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return m.work.fail("park", err)
		}
		f := &following{retries{work: m.work, step: "park"}, m.at.from}
		return f.run(ctx, func(context.Context) (session.ImageWork, error) { return begun, nil })
	}
}

// clearCopy removes the image that was made for a copy, which has its own on the other machine.
func (m *moving) clearCopy(context.Context) error {
	if m.record.Commit != "" && m.at.from != m.at.to {
		d := &dropping{moving: m}
		d.image(m.operations.life(), m.at.from, m.imageRef())
		d.tell("clear", "Delete the image that was made for it")
	}
	return nil
}

// endNext ends what was launched on the other machine, also if the answer to that was lost, and waits for that end:
// until then it has the name and the folders.
func (m *moving) endNext(ctx context.Context, r *retries) error {
	if m.record.Next == "" && m.record.Image != "" {
		found, err := answered(ctx, r, func() (session.Session, error) {
			return m.launches.launchedAt(ctx, m.at.to, LaunchRequest{Key: m.record.Key})
		})
		if err != nil {
			return err
		}
		m.record.Next = found.ID
	}
	if m.record.Next == "" {
		return nil
	}
	ask := func() (session.Session, error) { return m.at.to.Agent.Terminate(ctx, m.record.Next, true) }
	for {
		s, err := answered(ctx, r, ask)
		switch {
		case gone(err):
			return nil
		case err != nil:
			return err
		}
		m.launches.learn(m.at.to, s)
		if s.Status.Terminal() {
			return nil
		}
		ask = func() (session.Session, error) { return m.at.to.Agent.Get(ctx, m.record.Next) }
		if err := pace.Wall().Pause(ctx, lookEvery); err != nil {
			return err
		}
	}
}

// drop deletes what the relocation has made on the other machine, and the image that it made of the session.
func (m *moving) drop(ctx context.Context) {
	d := &dropping{moving: m}
	for _, f := range m.record.Folders {
		d.folder(ctx, f)
	}
	if m.record.Commit != "" {
		if m.record.Image != "" && m.at.from != m.at.to {
			d.image(ctx, m.at.to, m.record.Image)
		}
		d.image(ctx, m.at.from, m.imageRef())
	}
	d.tell("drop", "Delete what was copied")
}

// dropping deletes what a relocation has made. What cannot be deleted now stays, and is named.
type dropping struct {
	*moving
	left []string
}

func (d *dropping) try(ctx context.Context, what string, do ...func(context.Context) error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	for _, one := range do {
		if err := one(ctx); err != nil && !gone(err) {
			d.left = append(d.left, what)
			return
		}
	}
}

func (d *dropping) image(ctx context.Context, m *member, ref string) {
	d.try(ctx, "the image "+ref+" on "+m.Name(), func(ctx context.Context) error {
		return m.Agent.RemoveImage(ctx, ref)
	})
}

// folder deletes a folder that the relocation has made.
func (d *dropping) folder(ctx context.Context, f movedFolder) {
	if f.Made == "" {
		return
	}
	agent := d.at.to.Agent
	d.try(ctx, "the folder "+f.Name+" on "+d.record.To, func(ctx context.Context) error {
		_, err := agent.TrashFolder(ctx, f.Made)
		return err
	}, func(ctx context.Context) error { return agent.DeleteFolder(ctx, f.Made) })
}

func (d *dropping) tell(step, title string) {
	told := Step{Name: step, Title: title, State: StepOK}
	if len(d.left) > 0 {
		told.State, told.Detail = StepWarning, "Left: "+strings.Join(d.left, ", ")
		told.Remedy = "Delete it yourself."
	}
	d.work.Tell(told)
}
