package services

import (
	"context"
	"slices"
	"time"

	"slipway/backend/agent/scrape"
	"slipway/backend/serving"
	"slipway/backend/session"
	"slipway/gpu"
)

// oldestSample is the age at which a sample says nothing about a replica any more.
const oldestSample = 15 * time.Second

// measured are the values for the rules of a service that the router does not have. The caller holds mu.
func (s *Services) measured(one *service) map[serving.Metric]serving.Measured {
	all := map[serving.Metric]serving.Measured{}
	for _, rule := range one.Wish.Rules {
		if rule.Source == session.FromRouter {
			continue
		}
		var m serving.Measured
		sum := 0.0
		for _, r := range s.replicasOf(one.Name) {
			if r.Phase != serving.Healthy {
				continue
			}
			if value, known := s.value(r, rule); known {
				sum += value
				m.Known++
			} else {
				m.Missing++
			}
		}
		if m.Known > 0 {
			m.Mean = sum / float64(m.Known)
		}
		all[serving.Metric{Source: rule.Source, Name: rule.Metric}] = m
	}
	return all
}

// value is that of one replica.
func (s *Services) value(r *replica, rule session.ScalingRule) (value float64, known bool) {
	if rule.Source == session.FromFramework {
		return s.scraper.Value(r.ID, rule.Metric)
	}
	sample, known := s.config.Sample(r.ID)
	if !known || s.config.Clock.Since(sample.At) > oldestSample {
		return 0, false
	}
	return use(sample, r.grants, rule.Metric)
}

// use is what a session uses of its allocation, in percent.
func use(u session.Usage, of session.Grants, metric string) (percent float64, known bool) {
	part := func(used, all float64) (float64, bool) {
		if all <= 0 {
			return 0, false
		}
		return 100 * used / all, true
	}
	switch metric {
	case session.MetricCPUUtil:
		return part(u.CPU, float64(len(of.CPUs)))
	case session.MetricMem:
		return part(float64(u.Memory), float64(u.MemLimit))
	}
	var used, all float64
	for _, grant := range of.GPUs {
		at := slices.IndexFunc(u.GPUs, func(l session.DeviceLoad) bool {
			return l.Device == grant.Device && l.Instance == grant.Instance
		})
		switch {
		case at < 0:
			return 0, false
		case metric == session.MetricGPUUtil && u.GPUs[at].Util != nil:
			const whole = 10_000 // permyriad
			used += float64(*u.GPUs[at].Util) / whole
			all += float64(grant.Share) / float64(gpu.WholeDevice)
		case metric == session.MetricGPUMem && u.GPUs[at].Memory != nil:
			used += float64(*u.GPUs[at].Memory)
			all += float64(grant.Memory)
		default:
			return 0, false
		}
	}
	return part(used, all)
}

// scrape asks the healthy replicas for the metrics of the rules of their services. The caller holds mu.
func (s *Services) scrape(ctx context.Context) {
	var targets []scrape.Target
	for _, r := range s.replicas {
		one := s.list[r.service]
		if one == nil || r.Phase != serving.Healthy {
			continue
		}
		var metrics []string
		for _, rule := range one.Wish.Rules {
			if rule.Source == session.FromFramework {
				metrics = append(metrics, rule.Metric)
			}
		}
		if len(metrics) > 0 {
			targets = append(targets, scrape.Target{ID: r.ID, Port: r.port, Metrics: metrics})
		}
	}
	s.scraper.Scrape(ctx, targets)
}
