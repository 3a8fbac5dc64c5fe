package serving

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"slipway/backend/session"
)

// The sources of the values of rules, with their metrics.
const (
	FromRouter    = "router"    // [MetricWaiting], [MetricOutstanding] and [MetricRPS]
	FromFramework = "framework" // a metric of [Traffic].Framework, by its name there
	FromDevice    = "device"    // [MetricUse]
)

// The metrics that have fixed names.
const (
	MetricWaiting     = "waiting"     // requests that no replica has taken yet
	MetricOutstanding = "outstanding" // requests under way for each healthy replica
	MetricRPS         = "rps"         // requests in a second for each healthy replica
	MetricUse         = "use"         // percent of the devices
)

func window(r session.ScalingRule) time.Duration {
	return time.Duration(cmp.Or(r.Window, session.Duration(time.Minute)))
}
func cooldown(r session.ScalingRule) time.Duration {
	return time.Duration(cmp.Or(r.Cooldown, session.Duration(5*time.Minute)))
}

// least is the number of replicas that the rule keeps.
func least(r session.ScalingRule) int { return max(1, r.MinReplicas) }

// keyOf identifies the rule as long as its meaning is the same.
func keyOf(r session.ScalingRule) string {
	key := r.Source + "/" + r.Metric
	if r.ScaleDown != nil {
		key += " < " + strconv.FormatFloat(*r.ScaleDown, 'g', -1, 64)
	}
	return key
}

// Traffic is what the requests of a service do. What is unknown has no value, and decides nothing.
type Traffic struct {
	Waiting   int                // requests held because no replica can take them
	Last      time.Time          // when a request last came or ended
	RPS       *float64           // of all replicas together
	Use       *float64           // percent of the devices, on average
	Framework map[string]float64 // sums over the replicas, by metric; absent if the value of one replica is missing
}

// scaler decides how many replicas a plan wants.
type scaler struct{ *plan }

// value is that of the metric of a rule. It is missing if the router cannot know it or there is nothing to divide by.
func (p scaler) value(r session.ScalingRule) (value float64, known bool) {
	healthy, outstanding := 0, 0
	for _, r := range p.service.Replicas {
		if r.Phase == Healthy {
			healthy, outstanding = healthy+1, outstanding+r.Outstanding
		}
	}
	each := func(sum float64, known bool) (float64, bool) {
		return sum / float64(max(1, healthy)), known && healthy > 0
	}
	traffic := p.service.Traffic
	switch {
	case r.Source == FromRouter && r.Metric == MetricWaiting:
		return float64(traffic.Waiting), true
	case r.Source == FromRouter && r.Metric == MetricOutstanding:
		return each(float64(outstanding), true)
	case r.Source == FromRouter && r.Metric == MetricRPS && traffic.RPS != nil:
		return each(*traffic.RPS, true)
	case r.Source == FromFramework:
		sum, ok := traffic.Framework[r.Metric]
		return each(sum, ok)
	case r.Source == FromDevice && r.Metric == MetricUse && traffic.Use != nil:
		return *traffic.Use, true
	}
	return 0, false
}

// retarget sets how many replicas are wanted: what a person set since, else what the rules say.
func (p scaler) retarget() {
	scaling, set := &p.record.Scaling, max(1, p.service.Settings.Replicas)
	if scaling.Set != set && scaling.Set > 0 {
		p.record.Failures = Failures{} // a person changed something
	}
	if scaling.Set != set || len(p.service.Rules) == 0 {
		*scaling = Scaling{Set: set, Target: set}
	}
	if !p.resting() && !p.gaveUp() {
		p.scaleByRules()
	}
}

// scaleByRules follows the first rule that matches.
func (p scaler) scaleByRules() {
	scaling := &p.record.Scaling
	missing := p.watchLow()
	// While a replica starts, another one could not help sooner.
	up := p.healthy() >= scaling.Target
	for _, rule := range p.service.Rules {
		value, known := p.value(rule)
		if !known {
			continue
		}
		target := scaling.Target
		switch {
		case up && rule.ScaleUp != nil && value > *rule.ScaleUp && !p.coolsDown(rule):
			target += max(1, rule.StepSize)
			if rule.MaxReplicas > 0 {
				target = max(min(target, rule.MaxReplicas), scaling.Target) // a person may have set more
			}
		case !missing && p.lowSince(rule, window(rule)+cooldown(rule)):
			target = min(max(target-1, least(rule)), target)
		}
		if target == scaling.Target {
			continue
		}
		scaling.Target, scaling.At, scaling.Metric, scaling.Value = target, p.now, rule.Metric, value
		for i := range scaling.Low {
			scaling.Low[i].Since = p.now
		}
		return
	}
}

func (p scaler) coolsDown(rule session.ScalingRule) bool {
	at := p.record.Scaling.At
	return !at.IsZero() && p.now.Before(at.Add(cooldown(rule)))
}

// watchLow notes which rules have been below their thresholds since when, and reports whether the value of a rule is
// missing.
func (p scaler) watchLow() (missing bool) {
	scaling := &p.record.Scaling
	var low []Low
	for _, rule := range p.service.Rules {
		value, known := p.value(rule)
		missing = missing || !known
		if !known || rule.ScaleDown == nil || value >= *rule.ScaleDown {
			continue
		}
		one := Low{Rule: keyOf(rule), Since: p.now}
		at := slices.IndexFunc(scaling.Low, func(l Low) bool { return l.Rule == one.Rule })
		if at >= 0 {
			one = scaling.Low[at]
		}
		low = append(low, one)
	}
	scaling.Low = low
	return missing
}

func (p scaler) lowSince(rule session.ScalingRule, long time.Duration) bool {
	return slices.ContainsFunc(p.record.Scaling.Low, func(l Low) bool {
		return l.Rule == keyOf(rule) && p.now.Sub(l.Since) >= long
	})
}
