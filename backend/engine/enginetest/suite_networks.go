package enginetest

import (
	"context"
	"maps"

	"slipway/backend/engine"
	"slipway/backend/session"
)

var networkCases = []engineCase{
	{"a network is made once and removed once", func(s *suite) {
		c := s.container("")
		name := s.network(networkFor(c))
		if err := s.engine.CreateNetwork(s.ctx, networkFor(c)); err != nil {
			s.Errorf("second create: %v", err)
		}
		for range 2 {
			if err := s.engine.RemoveNetwork(s.ctx, name); err != nil {
				s.Errorf("remove: %v", err)
			}
		}
		c.Network = name
		s.wantCode(failure(s.engine.Create(s.ctx, c)), session.CodeEngineConflict)
	}},
	{"a network with other labels finds the name taken", func(s *suite) {
		n := networkFor(s.container(""))
		s.network(n)
		n.Labels = maps.Clone(n.Labels)
		n.Labels[engine.LabelSession] = "somebodyelse"
		s.wantCode(s.engine.CreateNetwork(s.ctx, n), session.CodeEngineConflict)
	}},
	{"a network without a name is invalid", func(s *suite) {
		n := networkFor(s.container(""))
		n.Name = ""
		s.wantCode(s.engine.CreateNetwork(s.ctx, n), session.CodeEngineInvalid)
	}},
	{"a network stays while a container runs in it", func(s *suite) {
		c := s.container("")
		c.Network = s.network(networkFor(c))
		id := s.run(c)
		s.wantCode(s.engine.RemoveNetwork(s.ctx, c.Network), session.CodeEngineConflict)
		if !s.inspect(id).Running {
			s.Error("the container does not run any more")
		}
	}},
	{"containers that are kept apart run in one network", func(s *suite) {
		network, first, second := s.apart()
		s.ok(s.engine.Remove(s.ctx, first))
		s.wantCode(s.engine.RemoveNetwork(s.ctx, network), session.CodeEngineConflict)
		if !s.inspect(second).Running {
			s.Error("the other container does not run any more")
		}
	}},
	{"create without its network says so", func(s *suite) {
		c := s.container("")
		// An engine's own networks are not for sessions: the machine's would share its loopback.
		for _, name := range []string{"slipway-none", "host", "bridge", "none", "container:" + c.Name} {
			c.Network = name
			s.wantCode(failure(s.engine.Create(s.ctx, c)), session.CodeEngineConflict)
			s.wantListed(c.Name, false)
		}
	}},
	{"attachment names a way", func(s *suite) {
		for _, fresh := range []bool{true, false} {
			attachment, err := s.engine.Attachment(s.ctx, fresh)
			if err != nil || attachment.Way == "" {
				s.Errorf("want a way, got %+v, %v", attachment, err)
			}
		}
	}},
}

// network makes a private network and removes it at the end of the case.
func (s *suite) network(n engine.Network) string {
	s.Helper()
	s.atEnd("the network that the case made",
		func(ctx context.Context) error { return s.engine.RemoveNetwork(ctx, n.Name) })
	s.ok(s.engine.CreateNetwork(s.ctx, n))
	return n.Name
}

func networkFor(c engine.Container) engine.Network {
	return engine.Network{Name: "slipway-" + c.Labels[engine.LabelSession], Labels: map[string]string{
		engine.LabelSession:  c.Labels[engine.LabelSession],
		engine.LabelInstance: c.Labels[engine.LabelInstance],
	}}
}

// apart makes a network that isolates its containers, and two of them in it.
func (s *suite) apart() (network string, first, second string) {
	s.Helper()
	c, d := s.container(""), s.container("")
	n := networkFor(c)
	n.Apart = true
	for range 2 {
		s.network(n)
	}
	c.Network, d.Network = n.Name, n.Name
	return n.Name, s.run(c), s.run(d)
}
