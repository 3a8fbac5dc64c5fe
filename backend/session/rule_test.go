package session

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRulesAreValidated(t *testing.T) {
	good := ScalingRule{Source: FromRouter, Metric: MetricOutstanding, ScaleUp: new(4.0), ScaleDown: new(1.0)}
	of := func(source, metric string) func(*ScalingRule) {
		return func(r *ScalingRule) { r.Source, r.Metric = source, metric }
	}
	for name, c := range map[string]struct {
		change func(r *ScalingRule)
		fields []string
	}{
		"as it is":            {func(*ScalingRule) {}, nil},
		"another source":      {func(r *ScalingRule) { r.Source = "cloud" }, []string{"metricSource"}},
		"a metric of devices": {func(r *ScalingRule) { r.Metric = MetricGPUUtil }, []string{"metricName"}},
		"of devices":          {of(FromDevice, MetricGPUUtil), nil},
		"of the server":       {of(FromFramework, "vllm:num_requests_waiting"), nil},
		"no metric":           {of(FromFramework, ""), []string{"metricName"}},
		"a digit first":       {of(FromFramework, "1a"), []string{"metricName"}},
		"a space":             {of(FromFramework, "a b"), []string{"metricName"}},
		"labels":              {of(FromFramework, "a{b}"), []string{"metricName"}},
		"no threshold": {func(r *ScalingRule) { r.ScaleUp, r.ScaleDown = nil, nil },
			[]string{"scaleUpThreshold"}},
		"a negative one":     {func(r *ScalingRule) { r.ScaleDown = new(-1.0) }, []string{"scaleDownThreshold"}},
		"thresholds crossed": {func(r *ScalingRule) { r.ScaleDown = new(4.0) }, []string{"scaleDownThreshold"}},
		"too large a step":   {func(r *ScalingRule) { r.StepSize = MaxReplicas + 1 }, []string{"stepSize"}},
		"the most below the least": {func(r *ScalingRule) { r.MinReplicas, r.MaxReplicas = 3, 2 },
			[]string{"maxReplicas"}},
		"times": {func(r *ScalingRule) { r.Window, r.Cooldown = Duration(time.Millisecond), -1 },
			[]string{"window", "cooldown"}},
	} {
		rule := good
		c.change(&rule)
		var fields []string
		for _, fault := range (ServiceWish{Rules: []ScalingRule{good, rule}}).Validate() {
			fields = append(fields, strings.TrimPrefix(fault.Field, "rules[1]."))
			if fault.Hint == "" {
				t.Errorf("%s: there is no hint: %+v", name, fault)
			}
		}
		if !slices.Equal(fields, c.fields) {
			t.Errorf("%s: %q", name, fields)
		}
	}
	if !ValidMetric(strings.Repeat("a", maxMetric)) || ValidMetric(strings.Repeat("a", maxMetric+1)) {
		t.Error("the longest name is another one")
	}
}
