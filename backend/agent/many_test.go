package agent

import (
	"context"
	"sync"
	"testing"
	"time"

	"slipway/backend/engine/enginetest"
	"slipway/backend/engine/sim/simtest"
	"slipway/backend/session"
	"slipway/gpu"
)

func TestManySessionsAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const many = 150
		w := newWorld(t, newFake(t, simtest.Config{CPUs: 100, Memory: many * gpu.GiB}), nil)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		for range 5 {
			go w.agent.Watch(ctx, session.Cursor{},
				func(session.Event) error { return nil }) //nolint:errcheck // ends with ctx
		}
		var all sync.WaitGroup
		for range many {
			all.Go(func() { w.launch(session.Spec{}) })
		}
		all.Wait()
		time.Sleep(time.Minute)
		count := func(status session.Status) int {
			list, err := w.agent.List(ctx, session.Filter{})
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, s := range list {
				if s.Status == status {
					n++
				}
			}
			return n
		}
		if running, waiting := count(session.Running), count(session.Pending); running != 100 || waiting != 50 {
			t.Errorf("%d run and %d wait", running, waiting)
		}
		if m, err := w.agent.Machine(ctx); err != nil || m.UsedCPUs != 100 || m.UsedMemory != 100*gpu.GiB {
			t.Errorf("machine %+v, %v", m, err)
		}
		w.audit()
		live, err := w.agent.List(ctx, session.Filter{Live: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range live {
			all.Go(func() {
				if _, err := w.agent.Terminate(ctx, s.ID, s.Attempt%2 == 0); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		time.Sleep(time.Minute)
		if ended, cancelled := count(session.Terminated), count(session.Cancelled); ended+cancelled != many ||
			ended < 100 {
			t.Errorf("%d ended and %d were cancelled", ended, cancelled)
		}
		if states := w.fake.States(); len(states) > 0 {
			t.Errorf("%d containers are left", len(states))
		}
		if w.agent.launch.Busy() > 0 || w.agent.queue.Waiting() > 0 {
			t.Errorf("%d courses and %d notes are left", w.agent.launch.Busy(), w.agent.queue.Waiting())
		}
		w.audit()
	})
}

func TestImagesAreTheEngines(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		time.Sleep(time.Second)
		images, err := w.agent.ListImages(context.Background())
		if err != nil || len(images) != 1 || images[0].Refs[0] != enginetest.ImageMinimal {
			t.Errorf("%+v, %v", images, err)
		}
		p, err := w.agent.Preview(context.Background(), "", session.Spec{Image: enginetest.ImageMinimal}, 1)
		if err != nil || p.Image == nil || p.Wait != nil || len(p.Errors) > 0 ||
			p.Spec.Resources.Memory != session.DefaultMemory {
			t.Errorf("%+v, %v", p, err)
		}
		if p, err = w.agent.Preview(context.Background(), "", session.Spec{Image: "not-here"}, 1); err != nil ||
			p.Image != nil {
			t.Errorf("%+v, %v", p, err)
		}
		w.fake.SetDown(true)
		if _, err := w.agent.ListImages(context.Background()); session.CodeOf(err) != session.CodeEngineUnavailable {
			t.Errorf("while the engine is away: %v", err)
		}
	})
}
