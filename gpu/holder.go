package gpu

import "strings"

// Holder is a session as the books of devices know it: its name, its
// containers by their ids of 64 hexadecimal digits, and its grants.
type Holder struct {
	Session    string   `json:"session"`
	Containers []string `json:"containers,omitempty"`
	Grants     []Grant  `json:"grants"`
}

// Holding is one holder's promise on one device.
type Holding struct {
	Holder string `json:"holder"`
	Grant  Grant  `json:"grant"`
}

// Holders finds the session that a process belongs to.
type Holders []Holder

// Of returns the session whose container p runs in, or false when it runs in
// none. Where containers are nested the outermost that is ours counts.
func (h Holders) Of(p ProcessSample) (string, bool) {
	if p.Container == "" {
		return "", false
	}
	for id := range strings.SplitSeq(p.Container, ",") {
		for _, holder := range h {
			for _, container := range holder.Containers {
				if container == id {
					return holder.Session, true
				}
			}
		}
	}
	return "", false
}
