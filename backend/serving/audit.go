package serving

import (
	"fmt"
	"slices"
	"time"
)

// audit takes back actions that break a promise, by the snapshot and not by what the plan made of it: a launch that
// exists already, and the end of a replica that has requests under way and time left. There are none unless this
// package is wrong.
func audit(s Snapshot, d *Decision, now time.Time) {
	services := make(map[ID]*Service, len(s.Services))
	for i := range s.Services {
		services[s.Services[i].ID] = &s.Services[i]
	}
	d.Launches = slices.DeleteFunc(d.Launches, func(l Launch) bool {
		return d.refuse("launch", l.Service, l.Attempt, launched(services[l.Service], l))
	})
	d.Terminations = slices.DeleteFunc(d.Terminations, func(t Termination) bool {
		return d.refuse("termination", t.Service, t.Attempt, busy(services[t.Service], t, now))
	})
}

func (d *Decision) refuse(what string, id ID, attempt int, why string) bool {
	if why != "" {
		d.Refused = append(d.Refused, fmt.Sprintf("%s of attempt %d of %s: %s", what, attempt, id, why))
	}
	return why != ""
}

func launched(s *Service, l Launch) string {
	for _, r := range s.Replicas {
		if r.Attempt == l.Attempt {
			return fmt.Sprintf("it is session %s, %s", r.ID, r.Phase)
		}
	}
	return ""
}

func busy(s *Service, t Termination, now time.Time) string {
	for _, r := range s.Replicas {
		if r.Attempt != t.Attempt || r.Phase == Ended || r.Outstanding == 0 || r.overdue(now) != nil {
			continue
		}
		at := slices.IndexFunc(s.Members, func(m Member) bool { return m.Attempt == r.Attempt && m.leaves() })
		if at < 0 || now.Before(s.Members[at].Deadline) {
			return fmt.Sprintf("requests under way: %d", r.Outstanding)
		}
	}
	return ""
}
