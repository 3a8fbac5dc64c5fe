package slurm

import (
	"context"
	"slices"
	"sync"
	"time"

	"slipway/backend/session"
	"slipway/backend/slurm"
)

// offer is what a site offers, as it was last asked for.
type offer struct {
	mu       sync.Mutex // guards everything below
	site     slurm.Site
	at       time.Time // of site; zero: it was never read
	tried    time.Time // when it was last asked for; zero: it is to be asked for again
	failures int       // since then
}

// What a site offers is asked for every siteAge, and after a failure first siteAgain later, then less and less often.
const (
	siteAge   = 10 * time.Minute
	siteAgain = time.Minute
)

func (o *offer) pause() time.Duration {
	if o.failures == 0 {
		return siteAge
	}
	return min(siteAgain<<min(o.failures-1, 10), siteAge)
}

// doubt has what the site offers asked for again, because Slurm does not take what it seems to offer.
func (o *offer) doubt() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tried = time.Time{}
}

// Site is what the site offers, at most ten minutes old while Slurm answers.
func (e *Engine) Site(ctx context.Context) (slurm.Site, error) {
	o, clock := &e.offer, e.config.Clock
	o.mu.Lock()
	site, at := o.site, o.at
	if !at.IsZero() && clock.Since(o.tried) < o.pause() {
		o.mu.Unlock()
		return site, ended(ctx)
	}
	o.tried = clock.Now() // others make do with what there is
	o.mu.Unlock()
	fresh, err := e.config.Commands.Site(ctx)
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil {
		o.site, o.at, o.failures = fresh, clock.Now(), 0
		return fresh, nil
	}
	o.failures++
	if !at.IsZero() && ctx.Err() == nil && clock.Since(at) < 6*siteAge {
		return site, nil // a controller that is restarted is no news
	}
	return site, failure(ctx, err)
}

// siteOf is what people choose from.
func siteOf(site slurm.Site) *session.SlurmSite {
	to := &session.SlurmSite{Version: site.Version, TimeRequired: site.TimeRequired,
		Partitions: []session.SlurmPartition{}, Accounts: []session.SlurmAccount{}, QOS: []session.SlurmQOS{}}
	for _, p := range site.Partitions {
		to.Partitions = append(to.Partitions, partitionOf(p, site))
	}
	for _, a := range site.Associations {
		to.Accounts = append(to.Accounts, session.SlurmAccount{Name: a.Account, Partition: a.Partition, QOS: a.QOS,
			DefaultQOS: a.DefaultQOS})
	}
	for _, q := range site.QOS {
		to.QOS = append(to.QOS, session.SlurmQOS{Name: q.Name, MaxTime: limit(q.MaxWall)})
	}
	return to
}

// limit is a time limit as people see it: none is 0.
func limit(d time.Duration) session.Duration {
	if d == slurm.Unlimited {
		return 0
	}
	return session.Duration(d)
}

func partitionOf(p slurm.Partition, site slurm.Site) session.SlurmPartition {
	to := session.SlurmPartition{Name: p.Name, Up: p.Up, Default: p.Default, MaxTime: limit(p.MaxTime),
		DefaultTime: limit(p.DefaultTime), Nodes: p.Nodes, Accounts: p.AllowAccounts, QOS: p.AllowQOS}
	if len(p.DenyAccounts) > 0 {
		for _, a := range site.Associations {
			if !slices.Contains(p.DenyAccounts, a.Account) && !slices.Contains(to.Accounts, a.Account) {
				to.Accounts = append(to.Accounts, a.Account)
			}
		}
	}
	if len(p.DenyQOS) > 0 {
		for _, q := range site.QOS {
			if !slices.Contains(p.DenyQOS, q.Name) {
				to.QOS = append(to.QOS, q.Name)
			}
		}
	}
	for _, shape := range p.Shapes {
		to.CPUs, to.Memory = max(to.CPUs, shape.CPUs), max(to.Memory, shape.Memory)
		for _, feature := range shape.Features {
			if !slices.Contains(to.Features, feature) {
				to.Features = append(to.Features, feature)
			}
		}
		for _, g := range shape.GPUs {
			at := slices.IndexFunc(to.GPUs, func(other session.SlurmGPU) bool { return other.Type == g.Type })
			if at < 0 {
				to.GPUs, at = append(to.GPUs, session.SlurmGPU{Type: g.Type}), len(to.GPUs)
			}
			to.GPUs[at].Count, to.GPUs[at].Shards = max(to.GPUs[at].Count, g.Count), max(to.GPUs[at].Shards, g.Shards)
		}
	}
	return to
}
