package hub

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway/backend/session"
)

// OperationKind is what an operation does.
type OperationKind string

// The kinds of operations.
const (
	AgentAdd       OperationKind = "agent-add"
	AgentProbe     OperationKind = "agent-probe"
	AgentUpgrade   OperationKind = "agent-upgrade"
	AgentRemove    OperationKind = "agent-remove"
	AgentReconnect OperationKind = "agent-reconnect"
	ImageSend      OperationKind = "image-send"
	ImageFetch     OperationKind = "image-fetch"
	FileArchive    OperationKind = "file-archive"
	FileCopy       OperationKind = "file-copy"
	FileSync       OperationKind = "file-sync"
	ImagePull      OperationKind = "image-pull"
	ImageCommit    OperationKind = "image-commit"
	ImageBuild     OperationKind = "image-build"
	ImageRemove    OperationKind = "image-remove"
	FolderPurge    OperationKind = "folder-purge"
	ProjectClone   OperationKind = "project-clone"
	SessionMove    OperationKind = "session-move"
	SessionCopy    OperationKind = "session-copy"
)

// OperationState is the state of an operation.
type OperationState string

// The states of an operation. The last three are final.
const (
	OperationRunning   OperationState = "running"
	OperationWaiting   OperationState = "waiting"
	OperationDone      OperationState = "done"
	OperationFailed    OperationState = "failed"
	OperationCancelled OperationState = "cancelled"
)

func (s OperationState) Ended() bool {
	return s == OperationDone || s == OperationFailed || s == OperationCancelled
}

// StepState is the state of a step of an operation.
type StepState string

// The states of a step.
const (
	StepPending StepState = "pending"
	StepRunning StepState = "running"
	StepOK      StepState = "ok"
	StepWarning StepState = "warning"
	StepFailed  StepState = "failed"
	StepSkipped StepState = "skipped"
)

// Step is one step of an operation. A check is a step too, with a remedy if it found a problem.
type Step struct {
	Name      string     `json:"name"`  // stable, for example docker or upload
	Title     string     `json:"title"` // for people
	State     StepState  `json:"state"` // pending, running, ok, warning, failed or skipped
	Detail    string     `json:"detail,omitempty"`
	Remedy    string     `json:"remedy,omitempty"` // one command or sentence
	StartedAt *time.Time `json:"startedAt,omitempty"`
	EndedAt   *time.Time `json:"endedAt,omitempty"`
}

// Progress is the progress of an operation in bytes.
type Progress struct {
	Done  int64    `json:"done"`           // bytes
	Total int64    `json:"total"`          // bytes; 0 while unknown
	Rate  int64    `json:"rate"`           // bytes per second, over the last seconds
	Left  *float64 `json:"left,omitempty"` // seconds, estimated; absent: unknown
}

// PromptKind is what a person is asked for.
type PromptKind string

// The kinds of prompts. A host key or a confirmation is answered with yes or no, and what to keep of two files
// with this, that or both. A notice is not answered; it is withdrawn when what it asks for has happened.
const (
	PromptUsername   PromptKind = "username"
	PromptPassword   PromptKind = "password"
	PromptPassphrase PromptKind = "passphrase"
	PromptMFA        PromptKind = "mfa"
	PromptHostKey    PromptKind = "host-key"
	PromptPairCode   PromptKind = "pair-code"
	PromptConfirm    PromptKind = "confirm"
	PromptKeep       PromptKind = "keep"
	PromptNotice     PromptKind = "notice"
)

// Prompt is a question to a person. The answer to a secret one is neither shown nor stored.
type Prompt struct {
	ID string `json:"id"`
	// username, password, passphrase, mfa, host-key, pair-code, confirm, keep, or notice: something to do elsewhere,
	// without an answer
	Kind        PromptKind `json:"kind"`
	Text        string     `json:"text"`
	Secret      bool       `json:"secret"`                // do not show the input
	Again       bool       `json:"again"`                 // the previous answer was not accepted
	Fingerprint string     `json:"fingerprint,omitempty"` // of a host's key
	Host        string     `json:"host,omitempty"`        // the host that has that key
	Sides       []string   `json:"sides,omitempty"`       // of keep: what this and that are
	// further questions of this kind; an answer followed by " all" is for them, too
	Remaining int `json:"remaining,omitempty"`
}

// Operation is work that takes a while. It has steps, may ask a person something, and can be cancelled. Events report
// it until it has ended. The last 50 are kept.
type Operation struct {
	ID string `json:"id"`
	// agent-add, agent-probe, agent-upgrade, agent-remove, agent-reconnect, image-send, image-fetch, image-pull,
	// image-commit, image-build, image-remove, file-archive, file-copy, file-sync, folder-purge, project-clone,
	// session-move or session-copy
	Kind OperationKind `json:"kind"`
	// name or address of the agent, reference of the image, or name of the archive, folder or session
	Subject   string         `json:"subject"`
	State     OperationState `json:"state"` // running, waiting (for an answer), done, failed or cancelled
	Steps     []Step         `json:"steps"` // those known so far, in order
	Progress  *Progress      `json:"progress,omitempty"`
	Prompt    *Prompt        `json:"prompt,omitempty"` // set while it is waiting
	Error     *session.Error `json:"error,omitempty"`  // why it failed
	Agent     string         `json:"agent,omitempty"`  // the agent that it added or changed
	Image     string         `json:"image,omitempty"`  // the image that it creates or transfers
	Folder    string         `json:"folder,omitempty"` // the folder that it makes or copies to
	Log       string         `json:"log,omitempty"`    // the end of what a build printed
	StartedAt time.Time      `json:"startedAt"`
	EndedAt   *time.Time     `json:"endedAt,omitempty"`
	Revision  uint64         `json:"revision"` // grows with every change
}

const (
	operationsKept = 50                     // besides those that run
	operationsMost = 16                     // that run at once
	stepsMost      = 200                    // of one operation
	askMost        = 10 * time.Minute       // how long a person may take to answer
	tellEvery      = 200 * time.Millisecond // how often progress is published
	answerMost     = 4 << 10                // bytes of an answer
)

type operations struct {
	*shared
	all    []*operation // mu guards them, each of them, and closed
	closed bool
	group  sync.WaitGroup
	life   func() context.Context // its context ends with the registry
	stop   context.CancelFunc
}

// errStopped ends work that was cancelled at the agent rather than here.
var errStopped = errors.New("hub: it was cancelled where it is done")

type operation struct {
	Operation
	key    string // what it works on; one operation at a time has it
	cancel context.CancelFunc
	answer chan string // of the prompt; of capacity 1
	asked  bool        // a person has cancelled it
	meter  meter
}

func newOperations(common *shared) *operations {
	ctx, stop := context.WithCancel(context.Background())
	return &operations{shared: common, life: func() context.Context { return ctx }, stop: stop}
}

func (o *operations) close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.stop()
	o.group.Wait()
}

// start starts an operation on a subject. It fails with operation_answer_conflict if the subject has one already.
func (o *operations) start(kind OperationKind, subject string,
	do func(context.Context, *Work) error) (Operation, error) {
	return o.startOn(subject, kind, subject, do)
}

// startOn is start for subjects that do not identify what is worked on; key does.
func (o *operations) startOn(key string, kind OperationKind, subject string,
	do func(context.Context, *Work) error) (Operation, error) {
	ctx, cancel := context.WithCancel(o.life())
	one := &operation{key: key, cancel: cancel, Operation: Operation{ID: newID(), Kind: kind, Subject: subject,
		State: OperationRunning, StartedAt: o.now()}}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.mayStart(key, subject); err != nil {
		cancel()
		return Operation{}, err
	}
	o.all = append(o.all, one)
	o.trim()
	o.publish(one)
	view := one.view()
	o.group.Go(func() {
		defer cancel()
		work := &Work{registry: o, operation: one}
		work.end(do(ctx, work))
	})
	return view, nil
}

// mayStart is called with mu held.
func (o *operations) mayStart(key, subject string) error {
	if o.closed {
		return session.NewError(session.CodeServerUnavailable, "Slipway is shutting down.", "Start it again.")
	}
	live := 0
	for _, other := range o.all {
		if other.State.Ended() {
			continue
		}
		if other.key == key {
			return session.NewError(session.CodeOperationConflict,
				fmt.Sprintf("An operation on %s is running already (%s).", subject, other.Kind),
				"Wait until it ends, or cancel it.")
		}
		live++
	}
	if live >= operationsMost {
		return session.NewError(session.CodeOperationConflict, fmt.Sprintf("%d operations are running already.", live),
			"Wait until one ends.")
	}
	return nil
}

func newID() string { return strings.ToLower(rand.Text()[:12]) }

// trim drops the oldest operations that have ended. The caller holds mu.
func (o *operations) trim() {
	excess := len(o.all) - operationsKept
	o.all = slices.DeleteFunc(o.all, func(one *operation) bool {
		drop := excess > 0 && one.State.Ended()
		excess -= truth(drop)
		return drop
	})
}

// publish publishes a change of an operation. The caller holds mu.
func (o *operations) publish(one *operation) {
	one.Revision++
	o.stream.publish(Event{Operation: new(one.view())})
}

// view is called with mu held.
func (one *operation) view() Operation {
	view := one.Operation
	view.Steps = slices.Clone(view.Steps)
	return view
}

// views returns all operations, newest first. The caller holds mu.
func (o *operations) views() []Operation {
	views := each(o.all, (*operation).view)
	slices.SortStableFunc(views, func(a, b Operation) int {
		return cmp.Or(b.StartedAt.Compare(a.StartedAt), cmp.Compare(b.ID, a.ID))
	})
	return views
}

// Operations returns the operations, newest first.
func (o *operations) Operations() []Operation { return locked(o.shared, o.views) }

// with calls do with an operation and returns the operation afterwards.
func (o *operations) with(id string, do func(*operation) error) (Operation, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	i := slices.IndexFunc(o.all, func(one *operation) bool { return one.ID == id })
	if i < 0 {
		return Operation{}, session.NewError(session.CodeOperationNotFound,
			fmt.Sprintf("There is no operation %q.", session.Clip(id)),
			fmt.Sprintf("The last %d are kept.", operationsKept))
	}
	if err := do(o.all[i]); err != nil {
		return Operation{}, err
	}
	return o.all[i].view(), nil
}

// Operation returns one operation. It fails with operation_read_not-found.
func (o *operations) Operation(id string) (Operation, error) {
	return o.with(id, func(*operation) error { return nil })
}

// AnswerOperation answers the current prompt of an operation, or fails with operation_answer_conflict.
func (o *operations) AnswerOperation(id, prompt, text string) (Operation, error) {
	if len(text) > answerMost {
		return Operation{}, session.NewError(session.CodeRequestInvalid, "The answer is too long.",
			"Answer the question.")
	}
	return o.with(id, func(one *operation) error {
		if one.Prompt == nil || one.Prompt.ID != prompt || one.Prompt.Kind == PromptNotice {
			return session.NewError(session.CodeOperationConflict, "The operation no longer asks this question.",
				"Read its current question.")
		}
		one.answer <- text // has room, since each prompt is answered once
		one.Prompt, one.State = nil, OperationRunning
		o.publish(one)
		return nil
	})
}

// CancelOperation asks an operation to end. It has no effect on one that has ended.
func (o *operations) CancelOperation(id string) (Operation, error) {
	return o.with(id, func(one *operation) error {
		if !one.State.Ended() {
			one.asked = true
			one.cancel()
		}
		return nil
	})
}

func problemOf(err error, kind OperationKind) *session.Error {
	if e, ok := errors.AsType[*session.Error](err); ok {
		return e
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return session.WrapError(err, session.CodeOperationTimeout, "It timed out.", "Try again.")
	}
	return session.WrapError(err, session.CodeOperationFailed, fmt.Sprintf("Internal error in Slipway (%s).", kind),
		"The log file says more: slipway doctor names it.")
}

// Accompany runs the work of one request as an operation, until ctx ends or a person cancels it.
func (o *operations) Accompany(ctx context.Context, kind OperationKind, subject string,
	do func(context.Context, *Work) error) error {
	ended := make(chan error, 1)
	run := func(life context.Context, work *Work) error {
		joint, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(life, cancel)()
		err := do(joint, work)
		ended <- err
		if err != nil && ctx.Err() != nil {
			err = session.WrapError(err, session.CodeOperationCancelled, "The request was closed.", "Try again.")
		}
		return err
	}
	name := subject
	for n := 2; ; n++ {
		_, err := o.start(kind, name, run)
		if err == nil {
			return <-ended
		}
		if n > operationsMost {
			return err
		}
		name = fmt.Sprintf("%s (%d)", subject, n)
	}
}
