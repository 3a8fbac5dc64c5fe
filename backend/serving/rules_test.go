package serving

import (
	"testing"
	"time"

	"slipway/backend/session"
)

func ruled(rule session.ScalingRule, outstanding int) Service {
	s := serve(Healthy)
	s.Rules = []session.ScalingRule{rule}
	s.Replicas[0].Outstanding = outstanding
	return s
}

// measured sets the mean of a metric over the replicas that have it.
func (s *Service) measured(rule session.ScalingRule, mean float64, known, missing int) {
	s.Traffic.Measured = map[Metric]Measured{{rule.Source, rule.Metric}: {mean, known, missing}}
}

var byOutstanding = session.ScalingRule{Source: session.FromRouter, Metric: session.MetricOutstanding,
	ScaleUp: new(4.0), ScaleDown: new(1.0), MinReplicas: 1, MaxReplicas: 3, Window: sec(30), Cooldown: sec(10)}

func TestARuleScalesUpAtOnceAndDownAfterAWhile(t *testing.T) {
	s := ruled(byOutstanding, 4)
	s.expect(t, at(0), Ready, "", "") // at the threshold
	s.Replicas[0].Outstanding = 5
	s.expect(t, at(1), Degraded, "launch 2 of 1", "1 of 2")
	s.Replicas[0].Outstanding = 50
	s.expect(t, at(12), Degraded, "", "") // while one starts, no other does
	s.up(at(13))
	s.expect(t, at(13), Degraded, "launch 3 of 1", "")
	s.up(at(24))
	s.expect(t, at(24), Ready, "", "3 of 3") // the most
	s.Replicas[0].Outstanding = 1
	s.expect(t, at(30), Ready, "", "")
	s.Replicas[0].Outstanding = 3 // 1 for each: not below
	s.expect(t, at(50), Ready, "", "")
	s.Replicas[0].Outstanding = 2
	s.expect(t, at(60), Ready, "", "")
	s.expect(t, at(99), Ready, "", "")
	s.expect(t, at(100), Ready, "drain 3", "2 of 2") // the window and the cooldown
	s.Replicas[0].Outstanding = 0
	s.expect(t, at(139), Ready, "end 3", "")
	s.expect(t, at(140), Ready, "drain 2", "1 of 1")
	s.expect(t, at(200), Ready, "end 2", "")
	s.expect(t, at(300), Ready, "", "") // the fewest
}

func TestRules(t *testing.T) {
	waiting := session.ScalingRule{Source: session.FromFramework, Metric: "vllm:num_requests_waiting",
		ScaleUp: new(10.0), StepSize: 2, ScaleDown: new(1.0), Window: sec(1), Cooldown: sec(1)}
	t.Run("wait after a change", func(t *testing.T) {
		s := ruled(byOutstanding, 9)
		s.Scaling = Scaling{Set: 1, Target: 1, At: at(0)}
		s.expect(t, at(9), Ready, "", "")
		s.expect(t, at(10), Degraded, "launch 2 of 1", "")
	})
	t.Run("change nothing without a value", func(t *testing.T) {
		s := ruled(waiting, 0)
		s.Scaling = Scaling{Set: 1, Target: 2, Low: []Low{{keyOf(waiting), at(0)}}}
		s.add(1, Healthy, noon)
		s.expect(t, at(100), Ready, "", "2 of 2")
		s.measured(waiting, 0, 2, 0)
		s.expect(t, at(200), Ready, "", "") // what was below before is unknown
		s.expect(t, at(202), Ready, "drain 2", "")
	})
	t.Run("do not scale down while the value of any is missing", func(t *testing.T) {
		s := ruled(byOutstanding, 0)
		s.Rules = append(s.Rules, waiting)
		s.Scaling = Scaling{Set: 1, Target: 2, Low: []Low{{keyOf(byOutstanding), at(0)}}}
		s.add(1, Healthy, noon)
		s.expect(t, at(100), Ready, "", "2 of 2")
	})
	t.Run("go up, but not down, while a replica lacks a value", func(t *testing.T) {
		s := ruled(waiting, 0)
		s.Scaling = Scaling{Set: 1, Target: 2, Low: []Low{{keyOf(waiting), at(0)}}}
		s.add(1, Healthy, noon)
		s.measured(waiting, 0, 1, 1)
		s.expect(t, at(100), Ready, "", "2 of 2")
		s.measured(waiting, 0, 2, 0)
		s.expect(t, at(200), Ready, "", "") // it may have been above
		s.measured(waiting, 11, 1, 1)
		s.expect(t, at(201), Degraded, "launch 3 of 1, launch 4 of 1", "")
	})
	t.Run("count for each replica and go up by their step", func(t *testing.T) {
		s := ruled(waiting, 0)
		s.measured(waiting, 10, 1, 0)
		s.expect(t, at(1), Ready, "", "")
		s.measured(waiting, 11, 1, 0)
		s.expect(t, at(2), Degraded, "launch 2 of 1, launch 3 of 1", "")
	})
	t.Run("are followed in their order", func(t *testing.T) {
		s := ruled(session.ScalingRule{Source: session.FromDevice, Metric: session.MetricGPUUtil,
			ScaleDown: new(50.0), Window: sec(1), Cooldown: sec(1)}, 9)
		s.measured(s.Rules[0], 10, 2, 0)
		s.Rules = append(s.Rules, byOutstanding)
		s.Scaling = Scaling{Set: 1, Target: 2, Low: []Low{{keyOf(s.Rules[0]), at(0)}}}
		s.add(1, Healthy, noon).Outstanding = 9
		s.expect(t, at(2), Ready, "drain 2", "")
	})
	t.Run("by requests in a second, and by requests that wait", func(t *testing.T) {
		s := ruled(session.ScalingRule{Source: session.FromRouter, Metric: session.MetricRPS, ScaleUp: new(5.0)}, 0)
		s.Rules = append(s.Rules, session.ScalingRule{Source: session.FromRouter, Metric: session.MetricWaiting,
			ScaleUp: new(0.0)})
		s.expect(t, at(1), Ready, "", "")
		s.Traffic.RPS = new(6.0)
		s.expect(t, at(2), Degraded, "launch 2 of 1", "")
		s = ruled(s.Rules[1], 0)
		s.Traffic.Waiting = 1
		s.expect(t, at(3), Degraded, "launch 2 of 1", "")
	})
	t.Run("give way to a number that a person sets", func(t *testing.T) {
		s := ruled(byOutstanding, 2)
		s.Scaling = Scaling{Set: 1, Target: 3}
		s.Settings.Replicas = 2
		s.expect(t, at(1), Degraded, "launch 2 of 1", "1 of 2")
	})
}

func TestWhatRulesDo(t *testing.T) {
	rule := session.ScalingRule{Source: session.FromFramework, Metric: "x", ScaleUp: new(4.0), ScaleDown: new(1.0),
		MaxReplicas: 4, Window: sec(30), Cooldown: sec(10)}
	for name, c := range map[string]struct {
		change func(s *Service)
		want   session.RuleDoes
		due    float64 // seconds after noon; 0: never
	}{
		"has no value": {func(s *Service) { s.Traffic.Measured = nil }, session.RuleMissing, 0},
		"is between":   {func(s *Service) { s.measured(rule, 4, 2, 0) }, session.RuleWithin, 0},
		"is above":     {func(s *Service) { s.measured(rule, 5, 2, 0) }, session.RuleAbove, 30}, // it goes up now
		"has as many as it allows": {func(s *Service) {
			s.Scaling.Target = 4
			s.measured(rule, 5, 2, 0)
		}, session.RuleMost, 0},
		"cools down": {func(s *Service) {
			s.Scaling.At = at(15)
			s.measured(rule, 5, 2, 0)
		}, session.RuleAbove, 25},
		"is below":                {func(*Service) {}, session.RuleBelow, 40},
		"has as few as it allows": {func(s *Service) { s.Scaling.Target = 1 }, session.RuleFewest, 0},
		"lacks a value":           {func(s *Service) { s.measured(rule, 0, 1, 1) }, session.RuleHeld, 0},
		"stops":                   {func(s *Service) { s.Stopping = true }, session.RuleRests, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := ruled(rule, 0)
			s.Scaling = Scaling{Set: 1, Target: 2, Low: []Low{{keyOf(rule), at(0)}}}
			s.add(1, Healthy, noon)
			s.measured(rule, 0, 2, 0)
			c.change(&s)
			got := Plan(Snapshot{Services: []Service{s}}, at(20)).Services[0].Rules[0]
			var due time.Time
			if c.due > 0 {
				due = at(c.due)
			}
			if got.Does != c.want || !got.Due.Equal(due) || (got.Value == nil) != (c.want == session.RuleMissing) {
				t.Errorf("got %+v, want %s at %v", got, c.want, due)
			}
		})
	}
}
