package enginetest

import (
	"context"
	"maps"

	"slipway/backend/engine"
	"slipway/backend/guest/link"
	"slipway/backend/session"
)

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

func caseNetwork(s *suite) {
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
}

func caseNetworkTaken(s *suite) {
	n := networkFor(s.container(""))
	s.network(n)
	n.Labels = maps.Clone(n.Labels)
	n.Labels[engine.LabelSession] = "somebodyelse"
	s.wantCode(s.engine.CreateNetwork(s.ctx, n), session.CodeEngineConflict)
}

func caseNetworkInvalid(s *suite) {
	n := networkFor(s.container(""))
	n.Name = ""
	s.wantCode(s.engine.CreateNetwork(s.ctx, n), session.CodeEngineInvalid)
}

func caseNetworkInUse(s *suite) {
	c := s.container("")
	c.Network = s.network(networkFor(c))
	id := s.run(c)
	s.wantCode(s.engine.RemoveNetwork(s.ctx, c.Network), session.CodeEngineConflict)
	if !s.inspect(id).Running {
		s.Error("the container does not run any more")
	}
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

func caseNetworkApart(s *suite) {
	network, first, second := s.apart()
	s.ok(s.engine.Remove(s.ctx, first))
	s.wantCode(s.engine.RemoveNetwork(s.ctx, network), session.CodeEngineConflict)
	if !s.inspect(second).Running {
		s.Error("the other container does not run any more")
	}
}

// caseServed tries only what the guests dial in their own containers: not every engine has addresses.
func caseServed(s *suite) {
	_, first, second := s.apart()
	server, other := s.connect(first), s.connect(second)
	s.ready(server)
	s.ready(other)
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	if _, err := server.StartService(ctx, link.ServiceRequest{ID: "server", Argv: s.Serve, Port: ServePort,
		Timeout: patience}); err != nil {
		s.Fatalf("the server does not start: %v", err)
	}
	conn, err := server.Dial(ctx, ServePort)
	if err != nil {
		s.Fatalf("it is not reached: %v", err)
	}
	conn.Close() //nolint:errcheck // nothing to lose
	if conn, err := other.Dial(ctx, ServePort); err == nil {
		conn.Close() //nolint:errcheck // nothing to lose
		s.Error("it is reached from another container")
	}
}

func caseCreateNoNetwork(s *suite) {
	c := s.container("")
	// An engine's own networks are not for sessions: the machine's would share its loopback.
	for _, name := range []string{"slipway-none", "host", "bridge", "none", "container:" + c.Name} {
		c.Network = name
		s.wantCode(failure(s.engine.Create(s.ctx, c)), session.CodeEngineConflict)
		s.wantListed(c.Name, false)
	}
}

func caseAttachment(s *suite) {
	for _, fresh := range []bool{true, false} {
		attachment, err := s.engine.Attachment(s.ctx, fresh)
		if err != nil || attachment.Way == "" {
			s.Errorf("want a way, got %+v, %v", attachment, err)
		}
	}
}
