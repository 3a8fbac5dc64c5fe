package scheduler

import (
	"strings"
	"time"

	"slipway/backend/session"
)

// RequestOf is a session that waits for nothing but its turn.
func RequestOf(s session.Session) Request {
	return Request{
		Resources: s.Spec.Resources, Session: s.ID, Name: s.Name, Owner: s.Owner, GPU: s.Spec.Accelerator,
		Kernels: s.Spec.Cluster, Priority: s.Priority, NotBefore: s.Spec.NotBefore,
		Timeout: time.Duration(s.Spec.Timeout), Kinds: KindsOf(s),
	}
}

// KindsOf says of what kind a session is, so that it can be told how long such
// sessions run: by its owner, image and name without a number, then without the
// name.
func KindsOf(s session.Session) []string {
	stem := strings.TrimRight(s.Spec.Name, "0123456789")
	image := strings.Join([]string{s.Owner, string(s.Spec.Type), s.Spec.Image}, "\x00")
	return []string{image + "\x00" + stem, image}
}
