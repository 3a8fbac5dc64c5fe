package slurm

import (
	"slices"
	"time"

	"slipway/backend/session"
	"slipway/backend/slurm"
)

// siteOf is what people choose from.
func siteOf(site slurm.Site) *session.SlurmSite {
	to := &session.SlurmSite{Version: site.Version, Partitions: []session.SlurmPartition{},
		Accounts: []session.SlurmAccount{}, QOS: []session.SlurmQOS{}}
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
