package tunnel

import (
	"context"
	"math/rand/v2"
	"net"
	"time"
)

// try begins an attempt and plans the next.
func (r *lineRun) try(ctx context.Context, manual *manualTry) {
	if manual == nil && r.watched() {
		return
	}
	r.thin()
	a := &attempt{began: time.Now()}
	d := r.config.Dialer
	if manual == nil {
		d = silentDialer{d}
		ctx, a.cancel = context.WithTimeout(ctx, r.config.Attempt)
	} else {
		a.manual = append(a.manual, *manual)
		ctx, a.cancel = context.WithCancel(ctx)
		stop := context.AfterFunc(manual.ctx, a.cancel)
		cancel := a.cancel
		a.cancel = func() { stop(); cancel() }
	}
	r.attempts[a] = true
	r.all.Go(func() {
		defer a.cancel()
		t, err := r.config.dial(ctx, d, r.config.Tunnel)
		r.results <- attempted{a, t, err}
	})
	if manual == nil {
		r.plan()
	}
}

// watched reports whether a person waits for an attempt. Meanwhile no silent one is made.
func (r *lineRun) watched() bool {
	for a := range r.attempts {
		if len(a.manual) > 0 {
			return true
		}
	}
	return false
}

// thin makes room for another attempt. The oldest stays.
func (r *lineRun) thin() {
	if len(r.attempts) < maxAttempts {
		return
	}
	var oldest, second *attempt
	for a := range r.attempts {
		switch {
		case oldest == nil || a.began.Before(oldest.began):
			oldest, second = a, oldest
		case second == nil || a.began.Before(second.began):
			second = a
		}
	}
	if second != nil && len(second.manual) == 0 {
		second.giveUp()
	}
}

// plan sets when the next attempt is made.
func (r *lineRun) plan() {
	pause := min(max(time.Since(r.trouble)/10, firstPause), longestPause)
	pause -= rand.N(pause/4 + 1) // so that many do not come all at once
	r.dialAt.Reset(pause)
	if r.up == nil {
		next := time.Now().Add(pause)
		r.line.publish(func(s *LineStatus) { s.NextTry = next })
	}
}

// silentDialer never asks.
type silentDialer struct{ Dialer }

func (d silentDialer) Dial(ctx context.Context, _ bool) (net.Conn, error) {
	return d.Dialer.Dial(ctx, true)
}
