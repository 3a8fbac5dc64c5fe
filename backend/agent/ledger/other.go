package ledger

import (
	"fmt"
	"time"

	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/gpu"
)

// Other is a container of another agent that holds devices.
type Other struct {
	engine.State
	Grants []gpu.Grant
}

// Holder names it in ledgers. No session has such an id.
func (o Other) Holder() session.ID { return session.ID("other-" + o.ID) }

// Since is when it began to run, nil where it has not.
func (o Other) Since() *time.Time {
	if o.StartedAt.IsZero() {
		return nil
	}
	return &o.StartedAt
}

// String says whose it is.
func (o Other) String() string {
	return fmt.Sprintf("%s (of %s, another Slipway)", label(o.State, engine.LabelName, "a session"),
		label(o.State, engine.LabelOwner, "somebody"))
}

// label is a label that another program wrote, fit to be shown.
func label(state engine.State, name, otherwise string) string {
	const most = 64
	text := state.Labels[name]
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most])
	}
	if text == "" || !session.IsPrintable(text) {
		return otherwise
	}
	return text
}

// On is what it holds of a device.
func (o Other) On(view gpu.View) (holder session.DeviceHolder, held bool) {
	holder = session.DeviceHolder{Name: o.String(), Owner: label(o.State, engine.LabelOwner, "")}
	for _, holding := range view.Holdings {
		if holding.Holder == string(o.Holder()) {
			held = true
			holder.Share += holding.Grant.Share
			holder.Promised += holding.Grant.Memory
		}
	}
	return holder, held
}
