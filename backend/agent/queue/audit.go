package queue

import (
	"slices"
	"strings"
	"sync"
	"time"

	"slipway/backend/scheduler"
	"slipway/backend/session"
)

// refusedTold is how long people are told of a refused placement.
const refusedTold = time.Hour

// audited is what the audits of plans found.
type audited struct {
	mu      sync.Mutex // guards everything below
	found   []string   // contradictions in what sessions hold, as last logged
	refused []string   // placements that the last plan with any was refused
	at      time.Time  // when; zero: never
}

// heedAudit logs what the audit of a plan found, once, and keeps what it refused
// to show it with the machine. It reports whether anything was refused.
func (q *Queue) heedAudit(plan scheduler.Schedule) bool {
	found := &q.audited
	found.mu.Lock()
	defer found.mu.Unlock()
	for _, what := range plan.Contradictions {
		if !slices.Contains(found.found, what) {
			q.config.Log.Warn("more of a device is allocated than it has", "what", what)
		}
	}
	found.found = plan.Contradictions
	for _, what := range plan.Refused {
		if !slices.Contains(found.refused, what) {
			q.config.Log.Error("a placement was refused: it would have allocated something twice", "what", what)
		}
	}
	if len(plan.Refused) > 0 {
		found.refused, found.at = plan.Refused, q.config.Clock.Now()
	}
	return len(plan.Refused) > 0
}

// Warning tells of placements that were refused lately.
func (q *Queue) Warning() (session.Warning, bool) {
	found := &q.audited
	found.mu.Lock()
	defer found.mu.Unlock()
	if found.at.IsZero() || q.config.Clock.Since(found.at) > refusedTold {
		return session.Warning{}, false
	}
	return session.Warning{
		Code: session.CodePlanRefused, At: found.at,
		Title: "A session was not started, because its resources are allocated already",
		Text: "This is an error in Slipway. Nothing was allocated twice. Report it with the agent's log: " +
			strings.Join(found.refused, "; ") + ".",
	}, true
}
