package gpu

import (
	"fmt"
	"slices"
)

// Policy is what the guard does with a session that stays above its allocation of memory.
type Policy string

// The policies. PolicyWarn, the default, only warns. PolicyEndProcess ends the newest process of the session on that
// device, PolicyEndSession the session.
const (
	PolicyWarn       Policy = "warn"
	PolicyEndProcess Policy = "end-process"
	PolicyEndSession Policy = "end-session"
)

// The marks of the guard, in percent of the allocation.
const (
	guardWarn       = 90
	guardOver       = 100
	guardHysteresis = 5
	guardPolls      = 2 // polls in a row above guardOver before it acts
)

// Stage is how the memory of a session on one device compares to its allocation.
type Stage string

// The stages.
const (
	StageOK   Stage = "ok"
	StageWarn Stage = "warn" // 90 % of the allocation is used
	StageOver Stage = "over" // more than the allocation was used in two polls in a row
)

// Reading is a session's use of its allocation on one device. Used is nil unless fully known; then the guard does not
// act.
type Reading struct {
	Session string
	Device  UUID
	Used    *Bytes
	Limit   Bytes
	Newest  *ProcessSample // the process that started last
}

// Alarm reports that a session crossed a mark, or that the guard acts. Act is [PolicyWarn] for a warning only.
type Alarm struct {
	Session string         `json:"session"`
	Device  UUID           `json:"device"`
	Stage   Stage          `json:"stage"`
	Act     Policy         `json:"act"`
	Used    Bytes          `json:"used"`
	Limit   Bytes          `json:"limit"`
	Process *ProcessSample `json:"process,omitempty"` // what to end under [PolicyEndProcess]
	Message string         `json:"message"`           // one sentence
}

// Guard watches the memory of sessions that nothing stronger limits. The zero value only warns. It answers each poll
// with alarms and ends nothing itself.
type Guard struct {
	Policy Policy
	watch  map[watchKey]*watched
}

type watchKey struct {
	session string
	device  UUID
}

type watched struct {
	stage Stage
	over  int // polls in a row above the allocation
	polls int
}

// Readings returns what sample knows of every grant, except whole devices and MIG instances, which hardware limits.
func Readings(sample Sample, holders Holders) []Reading {
	var readings []Reading
	for _, h := range holders {
		limited := slices.DeleteFunc(slices.Clone(h.Grants), func(g Grant) bool {
			return g.Whole || g.Instance != "" || g.Memory == 0
		})
		for _, g := range byDevice(limited) {
			r := Reading{Session: h.Session, Device: g.Device, Limit: g.Memory}
			if d, sampled := sample.Device(g.Device); sampled && !d.Blind {
				r.read(sample, holders)
			}
			readings = append(readings, r)
		}
	}
	return readings
}

func (r *Reading) read(sample Sample, holders Holders) {
	var used Bytes
	known := true
	for _, p := range unique(sample.Processes, r.Device) {
		if session, ours := holders.Of(p); !ours || session != r.Session {
			continue
		}
		if known = known && p.Memory != nil; known {
			used += *p.Memory
		}
		if r.Newest == nil || p.Start > r.Newest.Start || p.Start == r.Newest.Start && p.PID > r.Newest.PID {
			r.Newest = &p
		}
	}
	if known {
		r.Used = &used
	}
}

// Poll takes the readings of one poll and returns what changed. A session without a reading is forgotten. The first
// poll in which the use of a session is known raises no alarm, and the guard acts again after two more polls above the
// allocation.
func (g *Guard) Poll(readings []Reading) []Alarm {
	next := make(map[watchKey]*watched, len(readings))
	var alarms []Alarm
	for _, r := range readings {
		key := watchKey{r.Session, r.Device}
		w := g.watch[key]
		if w == nil {
			w = &watched{stage: StageOK}
		}
		next[key] = w
		if r.Used == nil || r.Limit <= 0 {
			w.over = 0
			continue
		}
		if w.polls++; w.polls == 1 {
			continue
		}
		if alarm, changed := g.judge(w, r); changed {
			alarms = append(alarms, alarm)
		}
	}
	g.watch = next
	return alarms
}

// Recall sets the stage of a session as it was before g was made. A change since then is an alarm of the second poll in
// which its use is known.
func (g *Guard) Recall(session string, device UUID, stage Stage) {
	if g.watch == nil {
		g.watch = map[watchKey]*watched{}
	}
	g.watch[watchKey{session, device}] = &watched{stage: stage}
}

func (g *Guard) judge(w *watched, r Reading) (Alarm, bool) {
	alarm := Alarm{Session: r.Session, Device: r.Device, Act: PolicyWarn, Used: *r.Used, Limit: r.Limit}
	if above(r, guardOver) {
		w.over++
	} else {
		w.over = 0
	}
	before := w.stage
	w.stage = stageAfter(before, r, w.over)
	acts := w.over >= guardPolls
	if acts {
		w.over = 0
		alarm.Act, alarm.Process = g.act(r)
	}
	if w.stage == before && (!acts || alarm.Act == PolicyWarn) {
		return Alarm{}, false
	}
	alarm.Stage, alarm.Message = w.stage, alarmText(w.stage, alarm.Act, r)
	return alarm, true
}

// stageAfter rises at a mark and falls only well below it.
func stageAfter(stage Stage, r Reading, over int) Stage {
	switch {
	case over >= guardPolls, stage == StageOver && above(r, guardOver-guardHysteresis):
		return StageOver
	case above(r, guardWarn), stage != StageOK && above(r, guardWarn-guardHysteresis):
		return StageWarn
	}
	return StageOK
}

func (g *Guard) act(r Reading) (Policy, *ProcessSample) {
	switch {
	case g.Policy == PolicyEndSession:
		return PolicyEndSession, nil
	case g.Policy == PolicyEndProcess && r.Newest != nil:
		return PolicyEndProcess, r.Newest
	}
	return PolicyWarn, nil
}

func above(r Reading, percent int64) bool {
	return int64(*r.Used)*100 > int64(r.Limit)*percent
}

func alarmText(stage Stage, act Policy, r Reading) string {
	text := fmt.Sprintf("The session uses %s of its %s of device memory", *r.Used, r.Limit)
	switch {
	case act == PolicyEndSession:
		return text + " and is ended."
	case act == PolicyEndProcess:
		return fmt.Sprintf("%s, and its process %d (%s) is ended.", text, r.Newest.PID, r.Newest.Name)
	case stage == StageOver:
		return text + ", which is more than it may."
	}
	return text + "."
}
