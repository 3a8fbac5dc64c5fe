package tunnel

import (
	"testing"
	"testing/synctest"
	"time"
)

// hiccup has the peer say nothing through its tunnels for a time, while it takes
// in logins.
func (w *walk) hiccup(silence time.Duration) {
	w.path.change(func() { w.path.address++ })
	time.Sleep(silence)
	w.path.change(func() { w.path.address-- })
	time.Sleep(10 * time.Second)
	synctest.Wait()
}

// outage has the path carry nothing for a time; what was under way comes later by
// as much again.
func (w *walk) outage(length time.Duration) {
	w.setUp(false)
	time.Sleep(length)
	w.setUp(true)
	time.Sleep(length + 10*time.Second)
	synctest.Wait()
}

// held fails unless the tunnel that a person made is the one in use.
func (w *walk) held() {
	w.Helper()
	w.path.mu.Lock()
	links := len(w.path.links)
	w.path.mu.Unlock()
	if status, _ := w.line.Status(); status.State != LineConnected || links != 1 {
		w.Errorf("it is %+v, with %d tunnels made", status, links)
	}
}

// A machine that asks for a one-time code is not dialled again without a person:
// the tunnel that one made is worth more than a quick look for another.
func TestLineHoldsATunnelThatOnlyAPersonCanReplace(t *testing.T) {
	asked := func(p *path, _ *LineConfig) { p.fail = ErrWouldAsk }
	for name, happen := range map[string]func(w *walk){
		"over a busy peer": func(w *walk) { w.hiccup(15 * time.Second) },
		"over an outage":   func(w *walk) { w.outage(8 * time.Second) },
		"while somebody waits": func(w *walk) {
			w.attach()
			w.hiccup(15 * time.Second)
		},
		"over changes of the network here": func(w *walk) {
			for i := range 10 {
				time.AfterFunc(time.Duration(i)*700*time.Millisecond, w.line.Nudge)
			}
			w.hiccup(15 * time.Second)
		},
		"while it is not known yet that a person is needed": func(w *walk) {
			w.path.change(func() { w.path.hang = true }) // a login takes its time
			w.hiccup(15 * time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			onLine(t, 40*time.Millisecond, asked, func(w *walk) {
				w.awaitState(LineQuestion, time.Minute)
				if err := w.line.Reconnect(w.Context()); err != nil {
					w.Fatal(err)
				}
				for range 3 {
					happen(w)
					w.held()
				}
			})
		})
	}
	t.Run("from the first login, which overtakes the line's own try", func(t *testing.T) {
		onLine(t, 40*time.Millisecond, asked, func(w *walk) { // both begin in the same moment
			if err := w.line.Reconnect(w.Context()); err != nil {
				w.Fatal(err)
			}
			w.held()
			w.hiccup(15 * time.Second)
			w.held()
		})
	})
	t.Run("but asks when it is gone", func(t *testing.T) {
		onLine(t, 40*time.Millisecond, asked, func(w *walk) {
			if err := w.line.Reconnect(w.Context()); err != nil {
				w.Fatal(err)
			}
			w.setUp(false)
			w.awaitState(LineProbing, 10*time.Second)
			w.awaitState(LineDown, 30*time.Second)
			w.setUp(true)
			w.awaitState(LineQuestion, time.Minute)
		})
	})
	t.Run("and asks in vain no oftener than it must", func(t *testing.T) {
		onLine(t, 40*time.Millisecond, asked, func(w *walk) {
			w.awaitState(LineQuestion, time.Minute)
			if err := w.line.Reconnect(w.Context()); err != nil {
				w.Fatal(err)
			}
			for range 10 {
				w.hiccup(15 * time.Second)
			}
			w.path.mu.Lock()
			defer w.path.mu.Unlock()
			if n := len(w.path.dials); n != 3 { // the line's, the person's, and one at the first silence
				w.Errorf("%d dials", n)
			}
		})
	})
}

// One that can be dialled without a question is replaced as before, also when a
// person made it.
func TestLineReplacesATunnelThatNeedsNobody(t *testing.T) {
	onLine(t, 40*time.Millisecond, nil, func(w *walk) {
		w.setUp(false)
		w.awaitState(LineDown, time.Minute)
		w.path.change(func() { w.path.carriers = 2 })
		w.setUp(true)
		if err := w.line.Reconnect(w.Context()); err != nil {
			w.Fatal(err)
		}
		time.Sleep(time.Minute)
		w.setUp(false)
		if lost := w.awaitState(LineDown, time.Minute); lost > 10*time.Second {
			w.Errorf("lost after %v", lost)
		}
	})
}
