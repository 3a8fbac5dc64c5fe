package enginetest

import (
	"context"
	"time"

	"slipway/backend/guest/link"
)

func (s *suite) connect(id string) *link.Client {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	conn, err := s.engine.Guest(ctx, id)
	if err != nil {
		s.Fatalf("guest: %v", err)
	}
	client, err := link.Connect(ctx, conn)
	if err != nil {
		s.Fatalf("hello: %v", err)
	}
	s.Cleanup(func() { client.Close() }) //nolint:errcheck // it may be broken by then
	return client
}

func (s *suite) ready(client *link.Client) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	seen := false
	err := client.Events(ctx, func(event link.Event) error {
		if event.Ready {
			seen = true
			cancel()
		}
		return nil
	})
	if !seen {
		s.Fatalf("the guest did not become ready: %v", err)
	}
}

func (s *suite) lost(client *link.Client) {
	s.Helper()
	select {
	case <-client.Done():
	case <-time.After(patience):
		s.Fatal("the connection goes on")
	}
}

func caseGuestHello(s *suite) {
	client := s.connect(s.start(""))
	if hello := client.Hello(); hello.Version != link.Version {
		s.Errorf("the guest speaks version %d, want %d", hello.Version, link.Version)
	}
	s.ready(client)
}

func caseGuestAgain(s *suite) {
	id := s.start("")
	first := s.connect(id)
	s.ready(first)
	first.Close() //nolint:errcheck // that it is lost is the point
	second := s.connect(id)
	s.ready(second)
	if s.DropGuest != nil {
		s.DropGuest(s.T, id)
		s.lost(second)
		s.ready(s.connect(id))
	}
	if !s.inspect(id).Running {
		s.Error("losing the connection ended the container")
	}
}

func caseGuestReplaced(s *suite) {
	id := s.start("")
	first := s.connect(id)
	second := s.connect(id)
	s.ready(second)
	s.lost(first)
}

func caseGuestBreaks(s *suite) {
	id := s.start("")
	client := s.connect(id)
	s.ready(client)
	s.ok(s.engine.Stop(s.ctx, id, 2*time.Second))
	s.lost(client)
}

func caseGuestRemoved(s *suite) {
	id := s.start("")
	client := s.connect(id)
	s.ready(client)
	s.ok(s.engine.Remove(s.ctx, id))
	s.lost(client)
}
