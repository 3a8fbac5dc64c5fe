package enginetest

import (
	"context"
	"maps"

	"slipway/backend/engine"
)

// network makes a private network for c that the case's end removes, after the
// containers in it.
func (s *suite) network(c engine.Container) string {
	s.Helper()
	name := "slipway-" + c.Labels[engine.LabelSession]
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.Patience)
		defer cancel()
		if err := s.engine.RemoveNetwork(ctx, name); err != nil {
			s.Errorf("removing the network that the case made: %v", err)
		}
	})
	if err := s.engine.CreateNetwork(s.ctx, name, networkLabels(c)); err != nil {
		s.Fatalf("create network: %v", err)
	}
	return name
}

func networkLabels(c engine.Container) map[string]string {
	return map[string]string{
		engine.LabelSession:  c.Labels[engine.LabelSession],
		engine.LabelInstance: c.Labels[engine.LabelInstance],
	}
}

func caseNetwork(s *suite) {
	c := s.container("")
	name := s.network(c)
	if err := s.engine.CreateNetwork(s.ctx, name, networkLabels(c)); err != nil {
		s.Errorf("second create: %v", err)
	}
	for range 2 {
		if err := s.engine.RemoveNetwork(s.ctx, name); err != nil {
			s.Errorf("remove: %v", err)
		}
	}
	c.Network = name
	_, err := s.engine.Create(s.ctx, c)
	s.wantCode(err, "engine_create_no-network")
}

func caseNetworkTaken(s *suite) {
	c := s.container("")
	name := s.network(c)
	other := maps.Clone(networkLabels(c))
	other[engine.LabelSession] = "somebodyelse"
	s.wantCode(s.engine.CreateNetwork(s.ctx, name, other), "engine_network_name-taken")
}

func caseNetworkInvalid(s *suite) {
	s.wantCode(s.engine.CreateNetwork(s.ctx, "", networkLabels(s.container(""))), "engine_network_invalid")
}

func caseNetworkInUse(s *suite) {
	c := s.container("")
	c.Network = s.network(c)
	id := s.create(c)
	if err := s.engine.Start(s.ctx, id); err != nil {
		s.Fatal(err)
	}
	s.wantCode(s.engine.RemoveNetwork(s.ctx, c.Network), "engine_network_in-use")
	if !s.inspect(id).Running {
		s.Error("the container does not run any more")
	}
}

func caseCreateNoNetwork(s *suite) {
	c := s.container("")
	c.Network = "slipway-none"
	_, err := s.engine.Create(s.ctx, c)
	s.wantCode(err, "engine_create_no-network")
	s.wantListed(c.Name, false)
}

func caseAttachment(s *suite) {
	for _, fresh := range []bool{true, false} {
		attachment, err := s.engine.Attachment(s.ctx, fresh)
		if err != nil || attachment.Way == "" {
			s.Errorf("want a way, got %+v, %v", attachment, err)
		}
	}
}
