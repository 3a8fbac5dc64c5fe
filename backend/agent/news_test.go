package agent

import (
	"strconv"
	"testing"

	"slipway/backend/session"
)

func TestOfSamplesAndDevicesOnlyTheNewestAreKept(t *testing.T) {
	s := newNews(nil, "epoch")
	for i := range 10 {
		s.Publish(session.Event{Usage: []session.Usage{{Session: "one"}}})
		s.Publish(session.Event{Devices: &session.DeviceBoard{Text: strconv.Itoa(i)}})
		s.Publish(session.Event{Session: &session.Session{ID: session.ID(strconv.Itoa(i))}})
	}
	events, _, ok := s.since(session.Cursor{Epoch: "epoch"})
	if !ok || len(events) != 30 {
		t.Fatalf("%d events", len(events))
	}
	var usage, boards, sessions int
	for i, e := range events {
		if e.Seq != uint64(i+1) {
			t.Errorf("event %d has the number %d", i+1, e.Seq)
		}
		usage += len(e.Usage)
		if e.Devices != nil {
			boards++
		}
		if e.Session != nil {
			sessions++
		}
	}
	if usage != 1 || boards != 1 || sessions != 10 || events[28].Devices == nil || events[28].Devices.Text != "9" {
		t.Errorf("%d samples, %d boards, %d sessions; the last is %+v", usage, boards, sessions, events[28].Devices)
	}
}

func TestStreamForgetsWhatFallsOutOfItsRing(t *testing.T) {
	s := newNews(nil, "epoch")
	for i := range 5 * ringSize {
		id := session.ID("s" + strconv.Itoa(i))
		s.Publish(session.Event{Session: &session.Session{ID: id, Revision: 2}})
		s.Publish(session.Event{Session: &session.Session{ID: id, Revision: 1}}) // it comes late
	}
	sessions := 0
	for _, e := range s.ring {
		if e.Session != nil {
			sessions++
			if e.Session.Revision != 2 {
				t.Fatalf("an older revision was told: %+v", e.Session)
			}
		}
	}
	if sessions != ringSize || len(s.revisions) != sessions {
		t.Errorf("%d sessions and %d revisions are kept", sessions, len(s.revisions))
	}
}
