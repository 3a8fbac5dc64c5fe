package store

import (
	"fmt"
	"strings"

	bolt "go.etcd.io/bbolt"

	"slipway/backend/session"
	"slipway/gpu"
)

// Check audits the store and returns a sentence for everything that is wrong: records in no index or in two, names,
// keys and phases without a session, double grants, ends without a time, phases that continue after the end.
func (s *Store) Check() ([]string, error) {
	a := &audit{names: map[string]session.ID{}, cpus: map[onNode[int]]session.ID{}, sessions: map[session.ID]record{},
		devices: map[onNode[gpu.UUID]]heldDevice{}, instances: map[onNode[gpu.UUID]]session.ID{}}
	err := s.db.View(func(tx *bolt.Tx) error {
		a.records(tx)
		a.indices(tx)
		a.references(tx)
		a.phases(tx)
		return nil
	})
	return a.problems, readError(err)
}

type audit struct {
	problems []string
	sessions map[session.ID]record
	names    map[string]session.ID
	cpus     map[onNode[int]]session.ID

	devices   map[onNode[gpu.UUID]]heldDevice
	instances map[onNode[gpu.UUID]]session.ID
}

// onNode is a CPU or device of one computer: CPU 0 of another is another one.
type onNode[T any] struct {
	node string // as of a kernel
	what T
}

func (o onNode[T]) String() string {
	if o.node == "" {
		return fmt.Sprint(o.what)
	}
	return fmt.Sprintf("%v of %s", o.what, o.node)
}

type heldDevice struct {
	share gpu.Share
	whole session.ID
}

func (a *audit) report(format string, args ...any) {
	a.problems = append(a.problems, fmt.Sprintf(format, args...))
}

func (a *audit) records(tx *bolt.Tx) {
	for key, data := range entries(tx.Bucket(bucketSessions), nil) {
		var r record
		if err := unmarshal(data, &r); err != nil {
			a.report("session %s cannot be read: %v", key, err)
			continue
		}
		s := r.Session
		if s.ID != session.ID(key) {
			a.report("session %s is stored under %s", s.ID, key)
		}
		a.sessions[s.ID] = r
		a.status(s)
	}
}

// status checks one record by itself and its grants against the others'.
func (a *audit) status(s session.Session) {
	if !s.Status.Live() && !s.Status.Terminal() {
		a.report("session %s has the unknown status %q", s.ID, s.Status)
	}
	if s.Status.Terminal() && (s.TerminatedAt == nil || s.Reason == "") {
		a.report("session %s is %s without a time or a reason", s.ID, s.Status)
	}
	if s.Status.Live() && s.TerminatedAt != nil {
		a.report("session %s is %s and has an end", s.ID, s.Status)
	}
	if s.Status == session.Pending && (len(s.Grants.CPUs) > 0 || s.Grants.Memory > 0 || len(s.Grants.GPUs) > 0) {
		a.report("session %s is PENDING and holds grants", s.ID)
	}
	if s.Status.HoldsResources() {
		if len(s.Kernels) == 0 {
			a.grants(s.ID, "", s.Grants)
		}
		for _, k := range s.Kernels {
			a.grants(s.ID, k.Node, k.Grants)
		}
		a.sum(s)
	}
	if s.Status.Live() {
		name := string(pair(s.Owner, s.Name))
		if other, taken := a.names[name]; taken {
			a.report("%s and %s are both named %q", other, s.ID, s.Name)
		}
		a.names[name] = s.ID
	}
}

// grants checks what a session holds on one node against what others hold there.
func (a *audit) grants(id session.ID, node string, held session.Grants) {
	for _, cpu := range held.CPUs {
		at := onNode[int]{node, cpu}
		if other, taken := a.cpus[at]; taken {
			a.report("CPU %v is promised to %s and %s", at, other, id)
		}
		a.cpus[at] = id
	}
	for _, g := range held.GPUs {
		at, instance := onNode[gpu.UUID]{node, g.Device}, onNode[gpu.UUID]{node, g.Instance}
		held := a.devices[at]
		switch {
		case g.Instance != "":
			if other, taken := a.instances[instance]; taken {
				a.report("instance %v is promised to %s and %s", instance, other, id)
			}
			a.instances[instance] = id
		case held.whole != "" || (g.Whole && held.share > 0):
			a.report("device %v is promised as a whole and to %s", at, id)
		case held.share+g.Share > gpu.WholeDevice:
			a.report("device %v is promised %s times over with %s", at, held.share+g.Share, id)
		}
		if g.Instance == "" {
			held.share += g.Share
		}
		if g.Whole {
			held.whole = id
		}
		a.devices[at] = held
	}
}

// sum checks that a session holds what its kernels hold.
func (a *audit) sum(s session.Session) {
	if len(s.Kernels) == 0 {
		return
	}
	var sum session.Grants
	for _, k := range s.Kernels {
		sum = sum.Plus(k.Grants)
	}
	if !sum.Equal(s.Grants) {
		a.report("session %s holds %+v and its kernels %+v", s.ID, s.Grants, sum)
	}
}

func (a *audit) indices(tx *bolt.Tx) {
	seen := map[session.ID]bool{}
	visit := func(bucket []byte, live bool) int {
		count := 0
		for arrival, id := range entries(tx.Bucket(bucket), nil) {
			count++
			r, known := a.sessions[session.ID(id)]
			switch {
			case !known:
				a.report("index %s has %s, which is not stored", bucket, id)
			case r.Number != number(arrival):
				a.report("index %s has %s under %d instead of %d", bucket, id, number(arrival), r.Number)
			case r.Session.Status.Live() != live:
				a.report("index %s has %s, which is %s", bucket, id, r.Session.Status)
			}
			if seen[session.ID(id)] {
				a.report("session %s is in an index twice", id)
			}
			seen[session.ID(id)] = true
		}
		return count
	}
	visit(bucketLive, true)
	finished := visit(bucketFinished, false)
	if counted := number(tx.Bucket(bucketMeta).Get(metaFinished)); counted != uint64(finished) {
		a.report("%d sessions are finished and %d were counted", finished, counted)
	}
	for id := range a.sessions {
		if !seen[id] {
			a.report("session %s is in no index", id)
		}
	}
}

func (a *audit) references(tx *bolt.Tx) {
	for name, id := range entries(tx.Bucket(bucketNames), nil) {
		if a.names[string(name)] != session.ID(id) {
			a.report("name %q belongs to %s and is kept for %s", name, a.names[string(name)], id)
		}
		delete(a.names, string(name))
	}
	for name, id := range a.names {
		a.report("name %q of %s is not kept", name, id)
	}
	keys := 0
	for key, id := range entries(tx.Bucket(bucketKeys), nil) {
		r, known := a.sessions[session.ID(id)]
		if !known {
			if m, err := decoded[moved]("move of", id, tx.Bucket(bucketMoved).Get(id)); err == nil &&
				string(key) == string(pair(m.Owner, m.Key)) {
				continue
			}
		}
		keys++
		if !known || string(key) != string(pair(r.Session.Owner, r.Key)) {
			a.report("key %q leads to %s, which does not have it", key, id)
		}
	}
	for id, r := range a.sessions {
		if r.Key != "" {
			keys--
			if tx.Bucket(bucketKeys).Get(pair(r.Session.Owner, r.Key)) == nil {
				a.report("the key of %s is not kept", id)
			}
		}
	}
	if keys > 0 {
		a.report("%d keys lead to sessions that other keys lead to", keys)
	}
}

func (a *audit) phases(tx *bolt.Tx) {
	for key, data := range entries(tx.Bucket(bucketPhases), nil) {
		var p session.Phase
		if err := unmarshal(data, &p); err != nil {
			a.report("phase %s cannot be read: %v", key, err)
			continue
		}
		id, _, _ := strings.Cut(string(key), "/")
		r, known := a.sessions[session.ID(id)]
		switch {
		case !known || p.Session != session.ID(id):
			a.report("phase %s belongs to no session", key)
		case p.Attempts < 1 || p.Attempts > session.MaxAttempts:
			a.report("phase %s has %d attempts", key, p.Attempts)
		case p.Result == session.OutcomeRunning && r.Session.Status.Terminal():
			a.report("phase %s goes on after the end of its session", key)
		}
	}
}
