package images

import (
	"context"
	"errors"
	"fmt"
	"time"

	"slipway/backend/agent/records"
	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

func (m *Images) CommitSession(ctx context.Context, id session.ID,
	req session.CommitRequest) (session.ImageWork, error) {
	s, err := m.config.Records.Get(id)
	if err != nil {
		return session.ImageWork{}, err
	}
	if wrong := session.CommitNames.Check(req.Name); wrong != nil {
		return session.ImageWork{}, session.Refused(session.CodeImageInvalid, *wrong)
	}
	if !s.KeepsContainer() && (s.Spec.Type != session.Interactive || s.Status != session.Running) {
		return session.ImageWork{}, session.NewError(session.CodeImageConflict,
			"Only an interactive session that runs is made an image.", "Wait until it runs.")
	}
	ref := session.CommitRef(s.Owner, req.Name)
	if err := m.mayCommit(ctx, ref, req.Name); err != nil {
		return session.ImageWork{}, err
	}
	one, working, err := m.jobs.begin(session.ImageWork{Kind: session.WorkCommit, Ref: ref, Owner: s.Owner,
		Session: id}, func(other session.ImageWork) error {
		switch {
		case other.Kind != session.WorkCommit:
		case other.Session == id:
			return session.NewError(session.CodeImageConflict,
				fmt.Sprintf("The session %s is being made an image already.", s.Name),
				"Wait until that has ended, or cancel it.")
		case other.Ref == ref:
			return nameTaken(req.Name)
		}
		return nil
	})
	if err != nil {
		return session.ImageWork{}, err
	}
	make := m.commitAndRecord
	if s.KeepsContainer() {
		make = m.commitKept
	}
	m.tasks.Go(func() { m.jobs.end(one, make(working, one, s, session.ImageOrigin{Name: req.Name})) })
	return m.jobs.await(working, one.ID, 0)
}

func (m *Images) mayCommit(ctx context.Context, ref, name string) error {
	_, err := m.image(ctx, ref)
	switch {
	case err == nil:
		return nameTaken(name)
	case session.CodeOf(err) == session.CodeNoImage:
		return nil
	}
	return m.config.Health.Heed(err)
}

func nameTaken(name string) error {
	return session.Refused(session.CodeImageExists, session.FieldError{Field: "name", Kind: session.KindDuplicate,
		Message: fmt.Sprintf("There is a customized image named %s already.", name),
		Hint:    "Choose another name, or remove that image."})
}

// commitAndRecord makes an image of a session and adds that to the session's history.
func (m *Images) commitAndRecord(ctx context.Context, one *job, s session.Session, origin session.ImageOrigin) error {
	began := m.config.Clock.Now().UTC()
	err := m.config.Health.Heed(m.Commit(ctx, s, origin, func(size gpu.Bytes) {
		m.jobs.change(one, func(one *job) { one.Size = size })
	}))
	m.noteCommit(s, origin.Name, began, err, one)
	return err
}

// Commit makes an image of the main kernel of a session. tell is called before with the size of what is copied.
func (m *Images) Commit(ctx context.Context, s session.Session, origin session.ImageOrigin,
	tell func(gpu.Bytes)) error {
	return engine.Within(ctx, m.config.Limits.Commit, "commit", func(ctx context.Context) error {
		container := s.Container()
		changed, err := m.config.Engine.Changed(ctx, container)
		if err != nil {
			return err
		}
		tell(changed)
		origin.Owner, origin.Instance = s.Owner, m.config.Records.Instance()
		origin.Session, origin.SessionName, origin.Base = s.ID, s.Name, s.Spec.Image
		if base, err := m.config.Engine.Image(ctx, s.Spec.Image); err == nil {
			if base = m.book.tell(base); base.Origin != nil {
				origin.Base = base.Origin.Base
			}
		}
		return m.commitClaimed(ctx, container, origin)
	})
}

// commitClaimed makes an image and records that. After a crash in between, the claim leads to the image.
func (m *Images) commitClaimed(ctx context.Context, container string, origin session.ImageOrigin) error {
	ref := session.CommitRef(origin.Owner, origin.Name)
	if err := m.config.Records.Update(func(tx *store.Tx) error { return tx.PutImageClaim(ref, origin) }); err != nil {
		return err
	}
	made, err := m.config.Engine.Commit(ctx, container, engine.Commit{Ref: ref, Origin: origin})
	if err == nil {
		return m.book.made(made, ref, origin)
	}
	if session.CodeOf(err) == session.CodeImageExists {
		err = nameTaken(origin.Name)
	}
	return errors.Join(err, m.config.Records.Update(func(tx *store.Tx) error { return tx.DropImageClaim(ref) }))
}

func (m *Images) noteCommit(s session.Session, name string, began time.Time, failed error, one *job) {
	step := session.Step{Step: "commit", Result: session.OutcomeSuccess, Message: name, StartedAt: began,
		EndedAt: new(m.config.Clock.Now().UTC())}
	m.jobs.mu.Lock()
	cancelled := one.dropped || m.jobs.life().Err() != nil
	m.jobs.mu.Unlock()
	switch {
	case failed != nil && cancelled:
		step.Result, step.Message = session.OutcomeStale, "cancelled"
	case failed != nil:
		cause := session.CauseOf(failed, session.CodeOperationFailed)
		step.Result, step.Code, step.Message = session.OutcomeFailure, cause.Code, cause.Message
	}
	_, err := m.config.Records.Change(s.ID, func(d *records.Draft) error {
		return d.PutPhase(session.Phase{Session: d.ID, Phase: session.PhaseCommit, Result: step.Result, From: d.Status,
			To: d.Status, Attempts: 1, Code: step.Code, Message: step.Message, Steps: []session.Step{step},
			CreatedAt: began, UpdatedAt: *step.EndedAt})
	})
	if err != nil {
		m.config.Log.Warn("a commit is missing from the history of its session", "session", s.ID, "err", err)
	}
}
