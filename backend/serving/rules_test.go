package serving

import (
	"testing"

	"slipway/backend/session"
)

func ruled(rule session.ScalingRule, outstanding int) Service {
	s := serve(Healthy)
	s.Rules = []session.ScalingRule{rule}
	s.Replicas[0].Outstanding = outstanding
	return s
}

var byOutstanding = session.ScalingRule{Source: FromRouter, Metric: MetricOutstanding, ScaleUp: new(4.0),
	ScaleDown: new(1.0), MinReplicas: 1, MaxReplicas: 3, Window: sec(30), Cooldown: sec(10)}

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
	waiting := session.ScalingRule{Source: FromFramework, Metric: "vllm:num_requests_waiting", ScaleUp: new(10.0),
		StepSize: 2, ScaleDown: new(1.0), Window: sec(1), Cooldown: sec(1)}
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
		s.Traffic.Framework = map[string]float64{waiting.Metric: 0}
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
	t.Run("count for each replica and go up by their step", func(t *testing.T) {
		s := ruled(waiting, 0)
		s.Traffic.Framework = map[string]float64{waiting.Metric: 10}
		s.expect(t, at(1), Ready, "", "")
		s.Traffic.Framework = map[string]float64{waiting.Metric: 11}
		s.expect(t, at(2), Degraded, "launch 2 of 1, launch 3 of 1", "")
	})
	t.Run("are followed in their order", func(t *testing.T) {
		s := ruled(session.ScalingRule{Source: FromDevice, Metric: MetricUse, ScaleDown: new(50.0), Window: sec(1),
			Cooldown: sec(1)}, 9)
		s.Traffic.Use = new(10.0)
		s.Rules = append(s.Rules, byOutstanding)
		s.Scaling = Scaling{Set: 1, Target: 2, Low: []Low{{keyOf(s.Rules[0]), at(0)}}}
		s.add(1, Healthy, noon).Outstanding = 9
		s.expect(t, at(2), Ready, "drain 2", "")
	})
	t.Run("by requests in a second, and by requests that wait", func(t *testing.T) {
		s := ruled(session.ScalingRule{Source: FromRouter, Metric: MetricRPS, ScaleUp: new(5.0)}, 0)
		s.Rules = append(s.Rules, session.ScalingRule{Source: FromRouter, Metric: MetricWaiting, ScaleUp: new(0.0)})
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
