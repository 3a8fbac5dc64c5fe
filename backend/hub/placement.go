package hub

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"slipway/backend/session"
)

// Preview is the preview of a launch by the chosen agent.
type Preview struct {
	session.Preview
	Agent string
	All   []Forecast // of each session of the launch, in their order, as far as its agent tells
}

// Forecast is what one session of a launch would do.
type Forecast struct {
	session.Forecast
	Agent string `json:"agent"`
	Pulls bool   `json:"pulls"` // its image would be pulled first
}

// Preview returns what a launch of count sessions for an owner would do; an empty owner is the user. It fails only if
// no agent answers.
func (l *launches) Preview(ctx context.Context, owner string, spec session.Spec, count int) (Preview, error) {
	spec = l.withSettings(spec)
	m, candidates, wrong := l.named(spec)
	if len(candidates) == 0 {
		return Preview{}, firstError(nil)
	}
	asked := spec
	if len(wrong) > 0 { // check the other fields too, where the spec fits best
		spec.Agent, spec.Group = "", ""
		if m != nil {
			spec.Agent = m.Name()
		}
	}
	p, err := l.previewAt(ctx, m, owner, spec, count, candidates)
	if err != nil {
		return Preview{}, err
	}
	if len(wrong) > 0 {
		p.Spec.Agent, p.Spec.Group = asked.Agent, asked.Group
	}
	p.Errors = slices.Concat(wrong, p.Errors, l.secrets.missing(spec))
	return p, nil
}

// previewAt asks one agent, or all candidates if m is nil.
func (l *launches) previewAt(ctx context.Context, m *member, owner string, spec session.Spec, count int,
	candidates []*member) (Preview, error) {
	if m == nil {
		offers, err := l.offers(ctx, owner, spec, count, candidates)
		if err != nil {
			return Preview{}, err
		}
		first := best(offers)
		p := Preview{Preview: first.Preview, Agent: first.member.Name()}
		for range count {
			o := best(offers)
			if len(o.forecasts) == 0 { // an older agent tells of the first session only
				break
			}
			p.All = append(p.All, o.take(spec))
		}
		return p, nil
	}
	p, err := l.ask(ctx, m, owner, spec, count)
	if err != nil {
		return Preview{}, err
	}
	found := Preview{Preview: p, Agent: m.Name()}
	for o := offerOf(m, p); len(o.forecasts) > 0; {
		found.All = append(found.All, o.take(spec))
	}
	return found, nil
}

// ask returns the preview of one agent. If the owner is refused, it is for the user.
func (l *launches) ask(ctx context.Context, m *member, owner string, spec session.Spec,
	count int) (session.Preview, error) {
	owner, refused := l.ownerAt(ctx, m, owner)
	p, err := m.Agent.Preview(ctx, owner, spec, count)
	if err != nil {
		return session.Preview{}, err
	}
	if refused != nil {
		p.Errors = append(p.Errors, session.AsError(refused, session.CodeInvalid).Fields...)
	}
	if slices.ContainsFunc(p.Errors, func(e session.FieldError) bool { return e.Field == "name" }) {
		return p, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range count {
		if wrong := l.taken(m, owner, session.Numbered(spec.Name, "-", i, count)); wrong != nil {
			p.Errors = append(p.Errors, *wrong)
			break
		}
	}
	return p, nil
}

// named returns the agent that a spec names, or the only candidate, or nil. An unknown agent or group is wrong.
func (l *launches) named(spec session.Spec) (m *member, candidates []*member, wrong []session.FieldError) {
	all := l.list()
	candidates = all
	refuse := func(field string, said session.Phrase) {
		wrong = append(wrong, session.Fault(field, session.KindNotFound, said))
	}
	if spec.Group != "" {
		candidates = l.without(all, func(m *member) bool { return m.entry.Group != spec.Group })
		if len(candidates) == 0 {
			refuse("group", session.Say("groupGone", session.Fill("group", session.Clip(spec.Group))))
			candidates = all
		}
	}
	if spec.Agent != "" {
		for _, m := range candidates {
			if m.Name() == spec.Agent {
				return m, candidates, wrong
			}
		}
		name := session.Fill("agent", session.Clip(spec.Agent))
		if len(candidates) == len(all) {
			refuse("agent", session.Say("machineGone", name))
		} else {
			refuse("agent", session.Say("machineOutside", name, session.Fill("group", spec.Group)))
		}
	}
	// agents whose data is refused are asked only if there is no other
	if trusted := l.without(candidates, func(m *member) bool { return m.distrust != nil }); len(trusted) > 0 {
		candidates = trusted
	}
	if len(candidates) == 1 {
		m = candidates[0]
	}
	return m, candidates, wrong
}

// without returns the members for which drop is false. It calls drop with mu held.
func (l *launches) without(members []*member, drop func(*member) bool) []*member {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(members), drop)
}

// offer is what an agent would do with a launch. forecasts are those of the sessions that it has not been given yet.
type offer struct {
	session.Preview
	member    *member
	freeCPUs  int
	forecasts []session.Forecast
}

func offerOf(m *member, p session.Preview) *offer {
	first := session.Forecast{Wait: p.Wait, GPUs: p.GPUs}
	return &offer{p, m, 0, append([]session.Forecast{first}, p.Further...)}
}

// take gives the offer the next session of a launch.
func (o *offer) take(spec session.Spec) Forecast {
	next := Forecast{o.forecasts[0], o.member.Name(), o.Image == nil}
	o.forecasts = o.forecasts[1:]
	if next.Wait == nil {
		o.freeCPUs -= spec.WithDefaults().Resources.CPU * max(spec.Cluster, 1)
	}
	return next
}

// offers asks every candidate. It fails only if none answers.
func (l *launches) offers(ctx context.Context, owner string, spec session.Spec, count int,
	candidates []*member) ([]*offer, error) {
	previews, errs := askAll(ctx, candidates, func(ctx context.Context, m *member) (session.Preview, error) {
		return l.ask(ctx, m, owner, spec, count)
	})
	var offers []*offer
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, m := range candidates {
		if errs[i] == nil {
			one := offerOf(m, previews[i])
			one.freeCPUs = m.machine.CPUs - m.machine.UsedCPUs
			offers = append(offers, one)
		}
	}
	if len(offers) == 0 {
		return nil, firstError(errs)
	}
	return offers, nil
}

// best returns the offer for the next session: no errors, then no wait, then no pull, then this computer if it does not
// wait there, then the most free CPUs.
func best(offers []*offer) *offer {
	waits := func(o *offer) int { return truth(len(o.forecasts) == 0 || o.forecasts[0].Wait != nil) }
	away := func(o *offer) int { return truth(!o.member.Local || waits(o) == 1) }
	return slices.MinFunc(offers, func(a, b *offer) int {
		return cmp.Or(
			cmp.Compare(len(a.Errors), len(b.Errors)),
			cmp.Compare(waits(a), waits(b)),
			cmp.Compare(truth(a.Image == nil), truth(b.Image == nil)),
			cmp.Compare(away(a), away(b)),
			cmp.Compare(b.freeCPUs, a.freeCPUs),
		)
	})
}

func each[A, B any](items []A, turn func(A) B) []B {
	out := make([]B, len(items))
	for i, item := range items {
		out[i] = turn(item)
	}
	return out
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

func firstError(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return session.NewError(session.CodeAgentUnavailable, "No agent is known.",
		"Add an agent, or start Slipway where Docker runs.")
}

// agentFor returns the agent for a launch. All requests with one key get the same agent, even if they arrive at once.
func (l *launches) agentFor(ctx context.Context, req LaunchRequest) (*member, error) {
	if req.Key == "" {
		return l.pick(ctx, req)
	}
	for {
		l.mu.Lock()
		turn, first := l.keys.claim(req.Key)
		l.mu.Unlock()
		if first {
			m, err := l.pick(ctx, req)
			l.mu.Lock()
			l.keys.settle(turn, m)
			l.mu.Unlock()
			return m, err
		}
		select {
		case <-turn.decided:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if turn.member != nil {
			return turn.member, nil
		}
	}
}

// pick chooses a machine for a launch.
func (l *launches) pick(ctx context.Context, req LaunchRequest) (*member, error) {
	owner, spec := req.Owner, req.Spec
	m, candidates, wrong := l.named(spec)
	if len(wrong) > 0 {
		if p, err := l.Preview(ctx, owner, spec, 1); err == nil {
			wrong = p.Errors // includes whatever else is wrong
		}
		return nil, session.Invalid(wrong)
	}
	if m != nil {
		return m, nil
	}
	if req.Key != "" {
		for _, c := range l.choices() {
			if m, err := l.member(c.Agent); err == nil && c.Key == req.Key {
				return m, nil
			}
		}
	}
	offers, err := l.offers(ctx, owner, spec, 1, candidates)
	if err != nil {
		return nil, err
	}
	m = best(offers).member
	if req.Key != "" {
		l.choosing.Lock()
		defer l.choosing.Unlock()
		choices := l.choices()
		choices = append(choices[max(0, len(choices)-choicesKept+1):], choice{req.Key, m.Name()})
		err = l.shelf.Save(choicesKey, choices)
	}
	return m, err
}

func (l *launches) choices() []choice {
	return read[[]choice](l.shared, choicesKey, "the machines of the last launches cannot be read")
}

// choice is the machine that was chosen for a launch with a key. It is on the shelf before the launch is sent, so that
// a hub that is started again repeats it there, though the machine may not be reached.
type choice struct {
	Key   string `json:"key"`
	Agent string `json:"agent"`
}

const (
	choicesKey  = "hub.choices"
	choicesKept = 128
)

// ownerAt returns the owner of a launch at an agent; empty: the user. Only admins launch for others, who must be people
// of the machine.
func (l *launches) ownerAt(ctx context.Context, m *member, asked string) (string, error) {
	l.mu.Lock()
	owner, role := m.machine.Owner, m.machine.Role
	l.mu.Unlock()
	if m.remote == nil {
		asked = cmp.Or(asked, l.owner)
	}
	switch {
	case asked != "" && !userRule.MatchString(asked):
		return "", wrongOwner(session.CodeInvalid, asked)
	case asked == "" || asked == owner:
		return asked, nil
	case m.remote != nil && role == session.RoleUser:
		return "", wrongField(session.CodeInvalid, "owner", session.KindForbidden,
			fmt.Sprintf("You are not an admin of %s, so you can launch there only for yourself.", m.Name()),
			"Choose an agent that you administer, or leave the owner out.")
	}
	if err := l.checkPerson(ctx, m, asked); err != nil {
		return "", err
	}
	return asked, nil
}

// keyring has the choices for the newest launch keys, oldest first. It is guarded by shared.mu.
type keyring []*turn

// turn is the choice of an agent for one key. member may be read once decided is closed; nil: choose again.
type turn struct {
	key     string
	decided chan struct{}
	member  *member
}

const keysKept = 512

// claim returns the turn of a key, and whether the caller must settle it.
func (k *keyring) claim(key string) (t *turn, first bool) {
	if i := slices.IndexFunc(*k, func(t *turn) bool { return t.key == key }); i >= 0 {
		return (*k)[i], false
	}
	t = &turn{key: key, decided: make(chan struct{})}
	*k = append((*k)[max(0, len(*k)-keysKept+1):], t)
	return t, true
}

// settle ends a turn. A key without an agent is forgotten.
func (k *keyring) settle(t *turn, m *member) {
	t.member = m
	close(t.decided)
	if m == nil {
		k.forget(nil)
	}
}

// forget drops the decided turns of an agent.
func (k *keyring) forget(m *member) {
	*k = slices.DeleteFunc(*k, func(t *turn) bool {
		select {
		case <-t.decided:
			return t.member == m
		default:
			return false
		}
	})
}
