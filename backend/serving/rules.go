package serving

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"slipway/backend/session"
)

func window(r session.ScalingRule) time.Duration {
	return time.Duration(cmp.Or(r.Window, session.DefaultWindow))
}
func cooldown(r session.ScalingRule) time.Duration {
	return time.Duration(cmp.Or(r.Cooldown, session.DefaultCooldown))
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
	Waiting  int       // requests held because no replica can take them
	Last     time.Time // when a request last came or ended
	RPS      *float64  // of all replicas together
	Measured map[Metric]Measured
}

// Metric is one that the replicas are asked for, or that is measured of them.
type Metric struct {
	Source string // [session.FromFramework] or [session.FromDevice]
	Name   string
}

// Measured are the values of the healthy replicas for a metric.
type Measured struct {
	Mean    float64 // of those that have one
	Known   int     // replicas that have a value; 0: there is no mean
	Missing int     // replicas that have none
}

// scaler decides how many replicas a plan wants.
type scaler struct{ *plan }

// reading is the value of the metric of a rule.
type reading struct {
	value float64
	known bool
	whole bool // no healthy replica lacks a value, else it may be too low
}

// read returns the value of the metric of a rule. It is missing if the router cannot know it, no replica has it, or
// there is nothing to divide by.
func (p scaler) read(r session.ScalingRule) reading {
	healthy, outstanding := 0, 0
	for _, r := range p.service.Replicas {
		if r.Phase == Healthy {
			healthy, outstanding = healthy+1, outstanding+r.Outstanding
		}
	}
	each := func(sum float64) reading {
		return reading{sum / float64(max(1, healthy)), healthy > 0, healthy > 0}
	}
	traffic := p.service.Traffic
	switch {
	case r.Source != session.FromRouter:
		m := traffic.Measured[Metric{r.Source, r.Metric}]
		return reading{m.Mean, m.Known > 0, m.Known > 0 && m.Missing == 0}
	case r.Metric == session.MetricWaiting:
		return reading{float64(traffic.Waiting), true, true}
	case r.Metric == session.MetricOutstanding:
		return each(float64(outstanding))
	case r.Metric == session.MetricRPS && traffic.RPS != nil:
		return each(*traffic.RPS)
	}
	return reading{}
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
		read := p.read(rule)
		if !read.known {
			continue
		}
		target := scaling.Target
		switch {
		case up && read.above(rule) && !p.now.Before(p.cooled(rule)):
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
		scaling.Target, scaling.At, scaling.Metric, scaling.Value = target, p.now, rule.Metric, read.value
		for i := range scaling.Low {
			scaling.Low[i].Since = p.now
		}
		return
	}
}

func (r reading) above(rule session.ScalingRule) bool {
	return r.known && rule.ScaleUp != nil && r.value > *rule.ScaleUp
}

func (r reading) below(rule session.ScalingRule) bool {
	return r.known && rule.ScaleDown != nil && r.value < *rule.ScaleDown
}

// cooled is when the cooldown of a rule after the last change ends; zero: there was none.
func (p scaler) cooled(rule session.ScalingRule) time.Time {
	if at := p.record.Scaling.At; !at.IsZero() {
		return at.Add(cooldown(rule))
	}
	return time.Time{}
}

// watchLow notes which rules have been below their thresholds since when, and reports whether the value of a replica is
// missing for any rule.
func (p scaler) watchLow() (missing bool) {
	scaling := &p.record.Scaling
	var low []Low
	for _, rule := range p.service.Rules {
		read := p.read(rule)
		missing = missing || !read.whole
		if !read.whole || !read.below(rule) {
			continue
		}
		one := Low{Rule: keyOf(rule), Since: p.now}
		if at := p.low(rule); at >= 0 {
			one = scaling.Low[at]
		}
		low = append(low, one)
	}
	scaling.Low = low
	return missing
}

// low is the index of a rule in those that are below their thresholds; negative: it is not.
func (p scaler) low(rule session.ScalingRule) int {
	return slices.IndexFunc(p.record.Scaling.Low, func(l Low) bool { return l.Rule == keyOf(rule) })
}

func (p scaler) lowSince(rule session.ScalingRule, long time.Duration) bool {
	at := p.low(rule)
	return at >= 0 && p.now.Sub(p.record.Scaling.Low[at].Since) >= long
}

// states returns what each rule does after the plan.
func (p scaler) states() (states []session.RuleState) {
	missing := slices.ContainsFunc(p.service.Rules,
		func(r session.ScalingRule) bool { return !p.read(r).whole })
	for _, rule := range p.service.Rules {
		states = append(states, p.state(rule, missing))
	}
	return states
}

func (p scaler) state(rule session.ScalingRule, missing bool) (s session.RuleState) {
	read, target := p.read(rule), p.record.Scaling.Target
	if read.known {
		s.Value = &read.value
	}
	switch {
	case p.resting() || p.gaveUp():
		s.Does = session.RuleRests
	case !read.known:
		s.Does = session.RuleMissing
	case read.above(rule) && rule.MaxReplicas > 0 && target >= rule.MaxReplicas:
		s.Does = session.RuleMost
	case read.above(rule):
		s.Does = session.RuleAbove
		if cooled := p.cooled(rule); p.now.Before(cooled) {
			s.Due = cooled
		}
	case !read.below(rule):
		s.Does = session.RuleWithin
	case target <= least(rule):
		s.Does = session.RuleFewest
	case missing:
		s.Does = session.RuleHeld
	default:
		s.Does = session.RuleBelow
		if at := p.low(rule); at >= 0 {
			s.Due = p.record.Scaling.Low[at].Since.Add(window(rule) + cooldown(rule))
		}
	}
	return s
}
