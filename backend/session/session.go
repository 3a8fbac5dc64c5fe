// Package session defines the concepts of Slipway: a [Spec] that a person writes, its [Session] on an agent, the
// [Status] values and their transitions, the [Phase] records that explain each step, the [Event] stream of every
// change, and [Agent], the one interface between a client and a machine.
//
// The package is pure: it does no I/O and reads no clock. A function that needs the time takes it as an argument.
package session

import (
	"crypto/rand"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"slipway/gpu"
)

// ID identifies a session permanently: 12 random lower-case letters and digits, safe in host names, paths and labels.
type ID string

// Session is the record of one session. It is stored, sent and shown as this record.
type Session struct {
	ID    ID     `json:"id"`
	Name  string `json:"name"`
	Owner string `json:"owner"`
	Agent string `json:"agent"` // name of the agent that keeps it
	Spec  Spec   `json:"spec"`  // as accepted: defaults filled in
	Resolved
	Status Status `json:"status"`
	Progress
	Allocation
	End
	CreatedAt time.Time `json:"createdAt"`
	Times
	Move
	Tags     []string `json:"tags"`     // set by a person, sorted; also of one that has ended
	Revision uint64   `json:"revision"` // grows with every stored change of this session
}

// Resolved is what the agent derived from the spec and the launch of a session.
type Resolved struct {
	Priority  int    `json:"priority"`
	DependsOn []ID   `json:"dependsOn"`         // Spec.After as it was understood
	Pinned    string `json:"pinned,omitempty"`  // its image by digest, as found in preparation
	ByAdmin   bool   `json:"byAdmin,omitempty"` // an admin launched it: it may use every image and registry login
	Launch    ID     `json:"launch,omitempty"`  // of sessions that were launched together; empty: it was alone
	Key       string `json:"key,omitempty"`     // of its launch, as in [LaunchRequest]
}

// Progress describes a session while it waits, starts and runs.
type Progress struct {
	Attempt   int         `json:"attempt"`        // counts placements; container names carry it
	Wait      *Wait       `json:"wait,omitempty"` // why a PENDING session is not placed yet
	Pull      *Pull       `json:"pull,omitempty"` // progress while PULLING
	Warnings  []Warning   `json:"warnings"`
	Idle      []IdleCheck `json:"idle"`                // what the idle checks found last
	KeepUntil *time.Time  `json:"keepUntil,omitempty"` // it is not reclaimed before
}

// Allocation is what a session holds on its machine.
type Allocation struct {
	Grants      Grants        `json:"grants"`
	Enforcement gpu.Level     `json:"enforcement"` // what limits the share of a device
	Kernels     []Kernel      `json:"kernels"`
	Folders     []FolderMount `json:"folders"`             // mounted, those of the spec and those that always are
	Processes   int           `json:"processes,omitempty"` // most processes and threads in each container; 0: no limit
}

// End is how a session ended, or will end.
type End struct {
	Result   Result `json:"result"`
	Reason   Reason `json:"reason"`
	ExitCode *int   `json:"exitCode"`           // of the batch command; nil before it ended
	Error    *Cause `json:"error,omitempty"`    // why Status is ERROR, or what went wrong last
	Stopping Reason `json:"stopping,omitempty"` // the reason of an end in progress
	Forced   bool   `json:"forced,omitempty"`
	// PeakMemory is the most memory that was in use at one time, as sampled; 0: unknown.
	PeakMemory gpu.Bytes `json:"peakMemory,omitempty"`
	EndImage   *EndImage `json:"endImage,omitempty"` // nil: not started, or not asked for
	Parked     bool      `json:"parked,omitempty"`   // it is ended in such a way that it can be continued; see [Moves]
}

// Times are the moments of a session's life after its creation.
type Times struct {
	ScheduledAt  *time.Time `json:"scheduledAt,omitempty"`
	StartedAt    *time.Time `json:"startedAt,omitempty"` // entered RUNNING
	TerminatedAt *time.Time `json:"terminatedAt,omitempty"`
}

// Move is what a session has to do with others and their machines: whether the hub may move it to one while it waits,
// and the session that it took the place of or continues. See [Moves].
type Move struct {
	Floats *Floats `json:"floats,omitempty"` // nil: the launch named its machine, on which it stays
	From   ID      `json:"from,omitempty"`   // the session in whose place it is, or that it continues; empty: none
	Held   bool    `json:"held,omitempty"`   // it does not start, since the other agent may still have that one
}

// Floats says where a session may wait and run that the launch bound to no machine.
type Floats struct {
	Group string `json:"group,omitempty"` // only on machines of this resource group, as the hub names it, if it is set
}

// Warning is a lasting problem that does not end the session.
type Warning struct {
	Code   Code      `json:"code"`
	Title  string    `json:"title"`
	Text   string    `json:"text"`
	At     time.Time `json:"at"`
	Device gpu.UUID  `json:"device,omitempty"` // the device, if any; each may have a warning of one code
}

// Wait explains in numbers why a PENDING session waits: "Needs 4 of 8 CPUs on lab, 1 is free. train-a frees 6 CPUs at
// 12:40 at the latest. CPUs: train-a has 6."
type Wait struct {
	Code     Code       `json:"code"`
	Message  string     `json:"message"`
	Said     []Phrase   `json:"said,omitempty"`     // the first sentences of Message, for other languages
	Details  []Phrase   `json:"details,omitempty"`  // the rest of them: what each device or session holds
	Position int        `json:"position"`           // in the queue of its machine, from 1
	Until    *time.Time `json:"until,omitempty"`    // when a known moment ends the wait
	Start    *time.Time `json:"start,omitempty"`    // estimated start, where history allows one
	Margin   Duration   `json:"margin,omitempty"`   // by how much the estimate was wrong before, either way
	Estimate *Phrase    `json:"estimate,omitempty"` // the start in words, after Start or else Until; nil: unknown
}

// Pull is the progress of an image pull.
type Pull struct {
	Current    gpu.Bytes `json:"current"` // bytes downloaded
	Total      gpu.Bytes `json:"total"`   // 0 while unknown
	Rate       gpu.Bytes `json:"rate"`    // bytes a second over the last seconds
	LayersDone int       `json:"layersDone"`
	Layers     int       `json:"layers"`
}

// Grants is what the scheduler allocated: exact CPUs, memory and parts of devices. Those of a session are the sum of
// its kernels' and are stored in the transaction that makes it SCHEDULED.
type Grants struct {
	CPUs   []int       `json:"cpus"` // numbers of the machine's CPUs
	Memory gpu.Bytes   `json:"memory"`
	GPUs   []gpu.Grant `json:"gpus"`
}

// Plus is the sum of g and another.
func (g Grants) Plus(other Grants) Grants {
	return Grants{CPUs: append(slices.Clip(g.CPUs), other.CPUs...), Memory: g.Memory + other.Memory,
		GPUs: append(slices.Clip(g.GPUs), other.GPUs...)}
}

// Equal reports whether g and another are the same.
func (g Grants) Equal(other Grants) bool {
	return slices.Equal(g.CPUs, other.CPUs) && g.Memory == other.Memory && slices.Equal(g.GPUs, other.GPUs)
}

// Kernel is one container of a session. Name is main1 for the only or first.
type Kernel struct {
	Name      string `json:"name"`
	Hostname  string `json:"hostname"`
	Container string `json:"container"`      // engine's id
	Node      string `json:"node,omitempty"` // computer that runs it, by its host name; empty: the agent's machine
	Status    Status `json:"status"`
	ExitCode  *int   `json:"exitCode"`
	Grants    Grants `json:"grants"`
}

// MainKernel is the name of a session's first kernel.
const MainKernel = "main1"

// KernelName is the name of a kernel by its number from 0: main1, sub1, sub2 and so on.
func KernelName(number int) string {
	if number == 0 {
		return MainKernel
	}
	return "sub" + strconv.Itoa(number)
}

// ValidKernel reports whether a session can have a kernel of this name.
func ValidKernel(name string) bool {
	for number := range MaxCluster {
		if name == KernelName(number) {
			return true
		}
	}
	return false
}

// Container is the engine's id of the first container, empty if there is none.
func (s Session) Container() string {
	if len(s.Kernels) == 0 {
		return ""
	}
	return s.Kernels[0].Container
}

// Kernel finds a kernel by its name; an empty name is the first.
func (s Session) Kernel(name string) (Kernel, bool) {
	for i, k := range s.Kernels {
		if k.Name == name || (name == "" && i == 0) {
			return k, true
		}
	}
	return Kernel{}, false
}

// Succeeded reports whether a session has ended well: a batch session in success, another one without an error.
func (s Session) Succeeded() bool {
	if s.Spec.Type == Batch {
		return s.Result == ResultSuccess
	}
	return s.Status == Terminated && s.Error == nil
}

// HomeFolder is the folder that is mounted as the home; nil: the home is deleted with the session.
func (s Session) HomeFolder() *FolderMount {
	i := slices.IndexFunc(s.Folders, func(m FolderMount) bool { return m.Target == Home })
	if i < 0 {
		return nil
	}
	return &s.Folders[i]
}

// UserOf describes the session as the user of a folder, if it has the folder mounted.
func (s Session) UserOf(folder FolderID) (user []FolderUser) {
	for _, m := range s.Folders {
		if m.Folder != folder {
			continue
		}
		if len(user) == 0 {
			user = []FolderUser{{Session: s.ID, Name: s.Name, Owner: s.Owner}}
		}
		user[0].Home = user[0].Home || m.Target == Home
	}
	return user
}

// Containers are the known ids of the session's containers.
func (s Session) Containers() (ids []string) {
	for _, k := range s.Kernels {
		if k.Container != "" {
			ids = append(ids, k.Container)
		}
	}
	return ids
}

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

// PhaseName names a phase of a session's life.
type PhaseName string

// The phases in their order.
const (
	PhaseSchedule  PhaseName = "schedule"
	PhasePrepare   PhaseName = "prepare"
	PhaseStart     PhaseName = "start"
	PhaseTerminate PhaseName = "terminate"
	// PhaseCommit is the making of an image of a running session, any number of times.
	PhaseCommit PhaseName = "commit"
)

// MaxAttempts is how often a phase is tried.
const MaxAttempts = 5

// Phase is the record of one phase of a session. Another attempt raises Attempts and adds no row.
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

const (
	idLength  = 12
	idLetters = "abcdefghijklmnopqrstuvwxyz0123456789"
)

var idRule = regexp.MustCompile(`^[a-z0-9]{12}$`)

// NewID returns a random id that begins with a letter, so that it can be a host name.
func NewID() ID {
	id := make([]byte, idLength)
	id[0] = idLetters[random(26)]
	for i := range id[1:] {
		id[i+1] = idLetters[random(len(idLetters))]
	}
	return ID(id)
}

// ValidID reports whether text has the form of an id.
func ValidID(text string) bool { return idRule.MatchString(text) }

// random returns a uniform number below n, which is at most 256.
func random(n int) int {
	var b [1]byte
	for {
		_, _ = rand.Read(b[:]) // never fails: see the documentation of crypto/rand
		if int(b[0]) < 256-256%n {
			return int(b[0]) % n
		}
	}
}

var (
	nameFirst = []string{
		"amber", "ample", "azure", "bold", "brave", "bright", "brisk", "calm", "clear", "coral", "crisp", "deep",
		"eager", "early", "fair", "fleet", "fresh", "gentle", "golden", "grand", "green", "happy", "hardy", "ivory",
		"jolly", "keen", "kind", "light", "lively", "lucky", "mellow", "merry", "misty", "noble", "pearl", "plain",
		"polar", "proud", "quick", "quiet", "rapid", "ready", "royal", "sandy", "silver", "smooth", "snowy", "solid",
		"steady", "still", "sunny", "swift", "tidal", "tidy", "true", "vivid", "warm", "wide", "windy", "wise",
	}
	nameSecond = []string{
		"anchor", "bay", "beacon", "bow", "breeze", "brig", "buoy", "canoe", "cape", "cliff", "clipper", "cloud",
		"coast", "comet", "compass", "cove", "crane", "current", "cutter", "delta", "dock", "dolphin", "drift", "ferry",
		"fjord", "galley", "gull", "harbor", "heron", "island", "jetty", "keel", "kelp", "ketch", "lagoon", "lantern",
		"launch", "marina", "mast", "oar", "ocean", "otter", "pelican", "pier", "port", "raft", "reef", "rudder",
		"sail", "schooner", "seal", "shell", "shore", "skiff", "sloop", "sound", "star", "tern", "tide", "wave",
	}
)

// RandomName returns a readable, valid name such as "calm-heron-42".
func RandomName() string {
	return fmt.Sprintf("%s-%s-%02d", nameFirst[random(len(nameFirst))], nameSecond[random(len(nameSecond))],
		random(100))
}
