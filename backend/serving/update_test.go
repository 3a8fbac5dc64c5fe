package serving

import (
	"testing"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// up makes the last replica run and pass.
func (s *Service) up(now time.Time) {
	r := &s.Replicas[len(s.Replicas)-1]
	*r = r.Run(now, now).Judge(Probe{Asked: now, Status: 200}, now)
}

func TestAnUpdateReplacesOneAfterAnother(t *testing.T) {
	s := serve(Healthy, Healthy)
	s.Replicas[1].Outstanding = 1
	s.Record = s.Update(2)
	s.expect(t, at(0), Updating, "launch 3 of 2", "Updating from revision 1 to 2, 0 of 2 done.")
	s.expect(t, at(1), Updating, "", "starting")
	s.up(at(2))
	s.expect(t, at(2), Updating, "drain 1", "1 of 2 done")
	s.expect(t, at(3), Updating, "end 1", "")
	s.expect(t, at(4), Updating, "launch 4 of 2", "")
	s.up(at(5))
	s.expect(t, at(5), Updating, "drain 2", "2 of 2 done")
	s.expect(t, at(604), Updating, "", "draining") // a long request
	s.expect(t, at(605), Updating, "end 2", "")
	s.expect(t, at(606), Ready, "", "2 of 2 replicas are healthy.")
	if s.Revision != 2 || s.Previous != 1 || s.Record.Updating != 0 {
		t.Errorf("got %+v", s.Record)
	}
}

func TestWithoutRoomAnUpdateStopsOneFirst(t *testing.T) {
	s := serve(Healthy)
	s.Room, s.Lacks = false, 12*gpu.GiB
	s.Record = s.Update(2)
	s.expect(t, at(0), Unreachable, "drain 1", "A new replica beside the old ones needs 12 GiB more device memory, so "+
		"one of them stops first and requests may wait.")
	s.expect(t, at(1), Unreachable, "end 1", "")
	s.expect(t, at(2), Unreachable, "launch 2 of 2", "")
	s.up(at(3))
	s.expect(t, at(3), Ready, "", "1 of 1")
}

func TestARevisionIsRolledBack(t *testing.T) {
	t.Run("that does not become healthy in time", func(t *testing.T) {
		s := serve(Healthy, Healthy)
		s.Record = s.Update(2)
		s.expect(t, at(0), Updating, "launch 3 of 2", "")
		s.Replicas[2] = s.Replicas[2].Run(at(1), at(1))
		s.expect(t, at(60), Updating, "", "loading")
		s.expect(t, at(61), Ready, "drain 3, end 3", "Revision 2 was rolled back: It did not become healthy in 1 min.")
		s.expect(t, at(62), Ready, "", "2 of 2")
	})
	t.Run("that failed 5 times", func(t *testing.T) {
		s := serve(Healthy)
		s.Record = s.Update(2)
		now := noon
		for i := range giveUp {
			s.step(now)
			s.end(i+1, now, session.ReasonTaskFailed)
			s.step(now)
			now = now.Add(time.Minute)
		}
		s.expect(t, now, Ready, "", "Revision 2 was rolled back: It failed 5 times in a row. The process exited")
		if r := s.Rejected; r == nil || r.Revision != 2 || len(r.Log) != 1 || s.Wanted() != 1 {
			t.Errorf("got %+v", s.Record)
		}
	})
	t.Run("that had replaced some already", func(t *testing.T) {
		s := serve(Healthy)
		s.Settings.Replicas = 2
		s.add(2, Healthy, noon)
		s.Record = s.Update(2)
		s.Failures = Failures{Revision: 2, Count: 5, Attempt: 2, Last: session.Phrase{Text: "It ended."}}
		s.expect(t, at(1), Updating, "launch 3 of 1", "Rolling back to revision 1.")
		s.up(at(2))
		s.expect(t, at(2), Ready, "drain 2", "2 of 2")
		s.expect(t, at(3), Ready, "end 2", "")
		s.expect(t, at(4), Ready, "", "Revision 2 was rolled back: It failed 5 times in a row. It ended.")
	})
}

func TestAnUpdate(t *testing.T) {
	t.Run("can be replaced", func(t *testing.T) {
		s := serve(Healthy)
		s.Record = s.Update(2)
		s.expect(t, at(0), Updating, "launch 2 of 2", "")
		s.Record = s.Update(3)
		s.expect(t, at(1), Updating, "end 2", "")
		s.expect(t, at(2), Updating, "launch 3 of 3", "")
	})
	t.Run("can be cancelled", func(t *testing.T) {
		s := serve(Healthy)
		s.Record = s.Update(2)
		s.expect(t, at(0), Updating, "launch 2 of 2", "")
		s.Record = s.Update(1)
		s.expect(t, at(1), Ready, "end 2", "")
	})
	t.Run("repairs a service that failed", func(t *testing.T) {
		s := serve()
		s.Settings.Replicas, s.Scaling.Set = 1, 1
		s.Failures = Failures{Revision: 1, Count: 5}
		s.expect(t, at(0), Failed, "", "")
		s.Record = s.Update(2)
		s.expect(t, at(1), Unreachable, "launch 1 of 2", "")
	})
	t.Run("makes room when the new replica stays in the queue", func(t *testing.T) {
		s := serve(Healthy)
		s.Record = s.Update(2)
		s.expect(t, at(0), Updating, "launch 2 of 2", "")
		s.Replicas[1].Queued, s.Room = true, false
		s.expect(t, at(9), Updating, "", "1 replica is in the queue.")
		s.expect(t, at(10), Unreachable, "drain 1", "")
	})
	t.Run("keeps replicas that an agent just started again does not know yet", func(t *testing.T) {
		s := serve(Healthy, Healthy)
		s.Record = s.Update(2)
		for i := range s.Replicas {
			s.Replicas[i].Phase, s.Replicas[i].Since = Warming, at(100)
		}
		s.expect(t, at(100), Unreachable, "launch 3 of 2", "")
	})
	t.Run("is not made by other rules or another number", func(t *testing.T) {
		s := serve(Healthy)
		s.Settings.Replicas, s.Settings.Grace = 2, sec(5)
		s.expect(t, at(1), Degraded, "launch 2 of 1", "")
	})
}
