package access_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/backend/access"
	"slipway/backend/agent"
	"slipway/backend/session"
	"slipway/backend/session/agenttest"
	"slipway/gpu"
)

// person is somebody who uses an agent that others use as well.
type person struct {
	name  string
	admin bool
	agent session.Agent
	told  told
}

// told is all that somebody was ever told.
type told struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

func (t *told) add(value any) {
	raw, err := json.Marshal(value)
	if err != nil {
		raw = fmt.Appendf(nil, "%+v", value)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text.Write(raw)
	t.text.WriteByte('\n')
}

// crowd are persons who do at random whatever an agent lets them.
type crowd struct {
	t      *testing.T
	r      *rand.Rand
	inner  *agent.Agent
	people []*person
	owners map[session.ID]string
	ids    []session.ID
	ended  map[session.ID]bool // somebody who may has asked for its end
}

// limits are what the persons of a crowd may hold.
var limits = map[string]session.Allowance{
	"ann-of-it":          {Sessions: 2, CPU: 3, Memory: 4 * gpu.GiB},
	"bob-of-it":          {CPU: 4, GPU: 700},
	session.DefaultOwner: {Sessions: 1},
	"nobody-has-such-an": {Sessions: 1},
}

func newCrowd(t *testing.T, seed uint64) *crowd {
	gate, inner := newGate(t)
	c := &crowd{t: t, r: rand.New(rand.NewPCG(seed, 1)), inner: inner, owners: map[session.ID]string{},
		ended: map[session.ID]bool{}}
	for owner, limit := range limits {
		if err := inner.SetAllowance(owner, &limit); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []*person{{name: "ann-of-it"}, {name: "bob-of-it"}, {name: "eve-of-it"}, {name: "new-of-it"},
		{name: ruler, admin: true}} {
		role := session.RoleUser
		if p.admin {
			role = session.RoleAdmin
		}
		p.agent = gate.As(access.Identity{Owner: p.name, Role: role})
		c.people = append(c.people, p)
	}
	return c
}

// watch has everybody follow the events until the returned function is called.
func (c *crowd) watch() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	for _, p := range c.people {
		watching.Go(func() {
			p.agent.Watch(ctx, session.Cursor{}, func(e session.Event) error { //nolint:errcheck // ends with ctx
				p.told.add(e)
				return nil
			})
		})
	}
	return func() { cancel(); watching.Wait() }
}

// mark is in every text that a person writes, and in nobody else's.
func mark(owner string) string { return "secret-" + owner }

// owner is a person for whom somebody launches: an admin for anybody, others
// for themselves, whatever they ask for.
func (c *crowd) launch(p *person) {
	owner := p.name
	asked := c.people[c.r.IntN(len(c.people))].name
	if p.admin {
		owner = asked
	}
	if owner == "new-of-it" {
		return // who has no sessions, and so must never hear of any
	}
	spec := session.Spec{
		Name: fmt.Sprintf("%s.%d", mark(owner), c.r.IntN(20)), Image: "python:3.12", Label: mark(owner) + "-label",
		Env:       []session.EnvVar{{Name: "NOTE", Value: mark(owner) + "-value"}},
		Resources: session.Resources{CPU: 1 + c.r.IntN(3), Memory: gpu.Bytes(1+c.r.IntN(4)) * gpu.GiB},
	}
	switch c.r.IntN(6) {
	case 0:
		spec.Accelerator = gpu.Request{Shares: gpu.Share(1+c.r.IntN(9)) * 100}
	case 1:
		spec.Accelerator = gpu.Request{Devices: 1}
	case 2:
		spec.Type, spec.Command = session.Batch, "echo "+mark(owner)+"; sleep 5"
	case 3:
		spec.Cluster = 2
	case 4:
		if len(c.ids) > 0 { // another's is no session that one could wait for
			spec.After = []string{string(c.any())}
		}
	}
	s, err := p.agent.Launch(context.Background(), session.LaunchRequest{Owner: asked, Spec: spec})
	if err != nil {
		c.heard(p, err, spec.After...)
		return
	}
	if s.Owner != owner {
		c.t.Errorf("%s launched for %s, and it is %s's", p.name, asked, s.Owner)
	}
	c.owners[s.ID], c.ids = s.Owner, append(c.ids, s.ID)
	for _, id := range s.DependsOn {
		if c.owners[id] != s.Owner {
			c.t.Errorf("a session of %s waits for one of %s", s.Owner, c.owners[id])
		}
	}
	p.told.add(s)
}

// heard keeps an error that somebody got, without what they asked for by name.
func (c *crowd) heard(p *person, err error, asked ...string) {
	text := fmt.Sprintf("%+v", session.AsError(err, "none"))
	for _, name := range asked {
		text = strings.ReplaceAll(text, name, "what was asked for")
	}
	p.told.add(text)
}

// any is the id of any session, and now and then of none.
func (c *crowd) any() session.ID {
	if c.r.IntN(10) == 0 || len(c.ids) == 0 {
		return session.NewID()
	}
	return c.ids[c.r.IntN(len(c.ids))]
}

// calls are the methods that are about one session, by their type.
var calls = func() (all []reflect.Method) {
	for _, m := range agenttest.Methods() {
		if m.Type.NumIn() > 1 && (m.Type.In(1) == reflect.TypeFor[session.ID]() ||
			m.Type.In(1) == reflect.TypeFor[session.Place]()) {
			all = append(all, m)
		}
	}
	return all
}()

// call does something to any session and reports what came of it.
func (c *crowd) call(p *person) {
	method, id := calls[c.r.IntN(len(calls))], c.any()
	owner := c.owners[id]
	theirs := owner != "" && (p.admin || owner == p.name)
	ctx, cancel := context.WithCancel(context.Background())
	if theirs { // what is not is refused without a wait
		ctx, cancel = context.WithTimeout(ctx, 50*time.Millisecond)
	}
	defer cancel()
	args := []reflect.Value{reflect.ValueOf(ctx)}
	for k := range method.Type.NumIn() {
		if k > 0 {
			args = append(args, c.argument(method.Type.In(k), id, owner))
		}
	}
	if theirs && (method.Name == "Terminate" || method.Name == "Park") {
		c.ended[id] = true
	}
	results := reflect.ValueOf(p.agent).MethodByName(method.Name).Call(args)
	err, _ := results[len(results)-1].Interface().(error)
	if !theirs {
		want := session.NoSession(id)
		if got := session.AsError(err, "none"); err == nil || got.Code != want.Code || got.Message != want.Message ||
			got.Hint != want.Hint || len(got.Fields) > 0 {
			c.t.Errorf("%s of %s by %s: %v", method.Name, owner, p.name, err)
		}
		return
	}
	if err != nil {
		c.heard(p, err, string(id))
		return
	}
	if len(results) < 2 {
		return
	}
	switch value := results[0].Interface().(type) {
	case io.ReadWriteCloser:
		value.Close() //nolint:errcheck // nothing to lose
	case io.ReadCloser:
		text, _ := io.ReadAll(io.LimitReader(value, 1<<16)) //nolint:errcheck // what there is
		value.Close()                                       //nolint:errcheck // nothing to lose
		p.told.add(string(text))
	default:
		p.told.add(value)
	}
}

// argument is one of a call: the session, a name, or anything.
func (c *crowd) argument(of reflect.Type, id session.ID, owner string) reflect.Value {
	value := reflect.New(of).Elem()
	switch of {
	case reflect.TypeFor[session.ID]():
		value.SetString(string(id))
	case reflect.TypeFor[session.Place]():
		value.Set(reflect.ValueOf(session.Place{Session: id}))
	case reflect.TypeFor[io.Reader]():
		value.Set(reflect.ValueOf(strings.NewReader("a few bytes")))
	case reflect.TypeFor[string]():
		value.SetString(fmt.Sprintf("%s.%d", mark(owner), c.r.IntN(20)))
	case reflect.TypeFor[int]():
		value.SetInt(int64(c.r.IntN(100)))
	case reflect.TypeFor[session.CommitRequest]():
		value.Set(reflect.ValueOf(session.CommitRequest{Name: fmt.Sprintf("%s-%d", mark(owner), c.r.IntN(20))}))
	case reflect.TypeFor[session.Duration]():
		value.SetInt(int64(time.Hour))
	}
	return value
}

// ask asks for something that is about no one session.
func (c *crowd) ask(p *person) {
	ctx := context.Background()
	answer := func(value any, err error) {
		if err != nil {
			c.heard(p, err)
			return
		}
		p.told.add(value)
	}
	switch c.r.IntN(6) {
	case 0:
		list, err := p.agent.List(ctx, session.Filter{Owner: c.people[c.r.IntN(len(c.people))].name,
			Live: c.r.IntN(2) == 0, Limit: c.r.IntN(10)})
		answer(list, err)
		if p.admin {
			return
		}
		if i := slices.IndexFunc(list, func(s session.Session) bool { return s.Owner != p.name }); i >= 0 {
			c.t.Errorf("%s lists a session of %s", p.name, list[i].Owner)
		}
	case 1:
		board, err := p.agent.Devices(ctx)
		answer(board, err)
	case 2:
		rows, err := p.agent.Accounts(ctx, session.AccountSpan{From: time.Now().Add(-time.Hour),
			To: time.Now().Add(time.Hour)})
		answer(rows, err)
	case 3:
		machine, err := p.agent.Machine(ctx)
		answer(machine, err)
	case 4:
		other := c.any()
		preview, err := p.agent.Preview(ctx, "",
			session.Spec{Image: "python:3.12", Name: fmt.Sprintf("x%d", c.r.IntN(1000)),
				Schedule:  session.Schedule{After: []string{string(other)}},
				Resources: session.Resources{CPU: 1 + c.r.IntN(60), Memory: gpu.GiB}}, 1)
		raw, marshalErr := json.Marshal(preview)
		if marshalErr != nil {
			c.t.Fatal(marshalErr)
		}
		answer(strings.ReplaceAll(string(raw), string(other), "what was asked for"), err)
	case 5:
		listing, err := p.agent.ListDirectories(ctx, "/")
		answer(listing, err)
	}
}

// checkHeld fails where somebody holds more than they may.
func (c *crowd) checkHeld() {
	c.t.Helper()
	live, err := c.inner.List(context.Background(), session.Filter{Live: true})
	if err != nil {
		c.t.Fatal(err)
	}
	held := map[string]session.Allowance{}
	for _, s := range live {
		if !s.Status.HoldsResources() {
			continue
		}
		h := held[s.Owner]
		h.Sessions, h.CPU, h.Memory = h.Sessions+1, h.CPU+len(s.Grants.CPUs), h.Memory+s.Grants.Memory
		for _, g := range s.Grants.GPUs {
			h.GPU += g.Share
		}
		held[s.Owner] = h
	}
	for owner, h := range held {
		limit := c.inner.Allowance(owner)
		if limit.Sessions > 0 && h.Sessions > limit.Sessions || limit.CPU > 0 && h.CPU > limit.CPU ||
			limit.Memory > 0 && h.Memory > limit.Memory || limit.GPU > 0 && h.GPU > limit.GPU {
			c.t.Errorf("%s holds %+v and may hold %+v", owner, h, limit)
		}
	}
}

// checkTold fails where somebody was told of what is others'.
func (c *crowd) checkTold() {
	c.t.Helper()
	for _, p := range c.people {
		text := p.told.text.String()
		if p.admin {
			if !strings.Contains(text, mark("ann-of-it")) || !strings.Contains(text, mark("bob-of-it")) {
				c.t.Error("the admin was not told of everybody")
			}
			continue
		}
		for _, other := range c.people {
			if other == p {
				continue
			}
			c.reveals(p, text, mark(other.name))
			if !other.admin { // whose name is not secret: they rule the agent
				c.reveals(p, text, other.name)
			}
		}
		for id, owner := range c.owners {
			if owner != p.name {
				c.reveals(p, text, string(id))
			}
		}
	}
}

func (c *crowd) reveals(p *person, text, secret string) {
	c.t.Helper()
	if at := strings.Index(text, secret); at >= 0 {
		c.t.Errorf("%s was told %q: …%s…", p.name, secret, text[max(0, at-300):min(len(text), at+100)])
	}
}

// checkUntouched fails where a session was ended or renamed by somebody whose
// it is not.
func (c *crowd) checkUntouched() {
	c.t.Helper()
	list, err := c.inner.List(context.Background(), session.Filter{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, s := range list {
		if !strings.HasPrefix(s.Name, mark(s.Owner)) {
			c.t.Errorf("a session of %s has the name %s", s.Owner, s.Name)
		}
		if by := s.Reason == session.ReasonUser || s.Reason == session.ReasonForced; by && !c.ended[s.ID] {
			c.t.Errorf("a session of %s was ended by nobody who may: %s", s.Owner, s.Reason)
		}
	}
}

func TestNobodyLearnsOfAnothersSessions(t *testing.T) {
	steps := 300
	if testing.Short() {
		steps = 150
	}
	for seed := range uint64(2) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			c := newCrowd(t, seed)
			stop := c.watch()
			for range steps {
				p := c.people[c.r.IntN(len(c.people))]
				switch n := c.r.IntN(10); {
				case n < 3:
					c.launch(p)
				case n < 8:
					c.call(p)
				default:
					c.ask(p)
				}
				c.checkHeld()
				if t.Failed() {
					break
				}
			}
			stop()
			c.checkTold()
			c.checkUntouched()
			if len(c.ids) < steps/20 {
				t.Errorf("only %d sessions were launched", len(c.ids))
			}
		})
	}
}
