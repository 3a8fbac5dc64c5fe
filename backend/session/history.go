package session

import "time"

// Outcome is the result of one attempt at a phase or a step.
type Outcome string

// The outcomes.
const (
	OutcomeRunning   Outcome = "RUNNING" // still under way
	OutcomeSuccess   Outcome = "SUCCESS"
	OutcomeFailure   Outcome = "FAILURE"
	OutcomeStale     Outcome = "STALE"
	OutcomeNeedRetry Outcome = "NEED_RETRY"
	OutcomeExpired   Outcome = "EXPIRED"
	OutcomeGiveUp    Outcome = "GIVE_UP"
	OutcomeSkipped   Outcome = "SKIPPED"
)

// PhaseName names a part of a session's course.
type PhaseName string

// The phases in their order.
const (
	PhaseSchedule  PhaseName = "schedule"
	PhasePrepare   PhaseName = "prepare"
	PhaseStart     PhaseName = "start"
	PhaseTerminate PhaseName = "terminate"
	// PhaseCommit is that a running session was made an image; it may be there
	// any number of times.
	PhaseCommit PhaseName = "commit"
)

// MaxAttempts is how often a phase is tried before it gives up.
const MaxAttempts = 5

// Phase is the record of a session's way through one phase. Repeating an
// attempt raises Attempts and adds no row.
type Phase struct {
	ID        string    `json:"id"`
	Session   ID        `json:"session"`
	Phase     PhaseName `json:"phase"`
	Result    Outcome   `json:"result"`
	From      Status    `json:"from"`
	To        Status    `json:"to"`
	Attempts  int       `json:"attempts"`
	Code      Code      `json:"code,omitempty"`
	Message   string    `json:"message,omitempty"`
	Said      []Phrase  `json:"said,omitempty"` // the sentences of Message, for other languages
	Steps     []Step    `json:"steps"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

// Step is one sub-step of a phase, of the newest attempt.
type Step struct {
	Step      string     `json:"step"`
	Result    Outcome    `json:"result"`
	Message   string     `json:"message,omitempty"`
	Said      []Phrase   `json:"said,omitempty"` // as of a phase
	Code      Code       `json:"code,omitempty"`
	StartedAt time.Time  `json:"startedAt"`
	EndedAt   *time.Time `json:"endedAt,omitempty"`
}
