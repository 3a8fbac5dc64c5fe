package tunnel

import (
	"context"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"time"
)

// try begins an attempt and plans the next.
func (r *lineRun) try(ctx context.Context, manual *manualTry) {
	if manual == nil && r.watched() != nil {
		return
	}
	r.thin()
	a := &attempt{began: time.Now()}
	d := r.line.config.Dialer
	if manual == nil {
		d = silentDialer{d}
		ctx, a.cancel = context.WithTimeout(ctx, attemptTime)
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
		t, err := r.line.config.dial(ctx, d, r.line.config.Tunnel)
		r.results <- attempted{a, t, err}
	})
	if manual == nil {
		r.plan()
	}
}

// watched returns the attempt that a person waits for, nil if there is none. During it no silent one is made.
func (r *lineRun) watched() *attempt {
	for a := range r.attempts {
		if len(a.manual) > 0 {
			return a
		}
	}
	return nil
}

// thin makes room for another attempt by ending the second oldest.
func (r *lineRun) thin() {
	byAge := slices.SortedFunc(maps.Keys(r.attempts), func(a, b *attempt) int { return a.began.Compare(b.began) })
	if len(byAge) >= maxAttempts && len(byAge[1].manual) == 0 {
		byAge[1].end()
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
