package sessions

import (
	"context"

	"slipway/backend/agent/records"
	"slipway/backend/session"
	"slipway/backend/store"
)

// Handovers moves waiting sessions between this machine and others; see [session.Moves].
type Handovers struct{ Of *Sessions }

func (h Handovers) Accept(ctx context.Context, req session.LaunchRequest) (session.Session, error) {
	if !session.ValidID(string(req.From)) {
		return session.Session{}, session.Refused(session.CodeInvalid, session.FieldError{Field: "from",
			Kind: session.KindInvalid, Message: "The session to take over is missing."})
	}
	return h.Of.launch(ctx, req, true)
}

func (h Handovers) Yield(_ context.Context, id, to session.ID) error {
	config := &h.Of.config
	var gone session.Session
	err := config.Records.Update(func(tx *store.Tx) (err error) {
		gone, err = tx.Move(id, to, config.Clock.Now().UTC())
		return err
	})
	if err == nil && gone.ID != "" {
		config.Queue.Forget(id)
		config.Removed(gone)
		config.Queue.Wake()
	}
	return err
}

func (h Handovers) Release(_ context.Context, id session.ID) (session.Session, error) {
	s, err := h.Of.config.Records.Change(id, func(d *records.Draft) error {
		d.Held = false
		return nil
	})
	if err == nil {
		h.Of.config.Queue.Wake()
	}
	return h.Of.Dress(s), err
}
