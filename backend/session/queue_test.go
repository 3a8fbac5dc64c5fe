package session

import (
	"slices"
	"strings"
	"testing"

	"slipway/gpu"
)

func TestQueueFieldsHaveRulesOfTheirOwn(t *testing.T) {
	percent := func(v float64) *float64 { return &v }
	number := func(n int) *int { return &n }
	hour := Duration(3600e9)
	for name, c := range map[string]struct {
		change func(*Spec)
		want   string // field and code, or empty
	}{
		"nothing":        {func(*Spec) {}, ""},
		"a share":        {func(s *Spec) { s.Accelerator.Shares = 500 }, ""},
		"a share by MPS": {func(s *Spec) { s.Accelerator.Shares, s.MPS = 500, true }, ""},
		"memory by MPS":  {func(s *Spec) { s.Accelerator.Memory, s.MPS = gpu.GiB, true }, ""},
		"MPS alone":      {func(s *Spec) { s.MPS = true }, "mps invalid"},
		"MPS of an instance": {func(s *Spec) { s.Accelerator.Profile, s.MPS = "1g.10gb", true },
			"mps invalid"},
		"two ways to ask": {func(s *Spec) { s.Accelerator = gpu.Request{Shares: 500, Devices: 1} },
			"accelerator invalid"},
		"the largest cluster": {func(s *Spec) { s.Cluster = 8 }, ""},
		"a larger one":        {func(s *Spec) { s.Cluster = 9 }, "cluster out-of-range"},
		"the lowest priority": {func(s *Spec) { s.Priority = number(0) }, ""},
		"the highest":         {func(s *Spec) { s.Priority = number(100) }, ""},
		"a higher one": {func(s *Spec) { s.Priority = number(101) },
			"priority out-of-range"},
		"an id and a name": {func(s *Spec) { s.After = []string{"aaaaaaaaaaaa", "train-a"} }, ""},
		"no name": {func(s *Spec) { s.After = []string{"a b"} },
			"after[0] invalid"},
		"itself": {func(s *Spec) { s.Name, s.After = "train-a", []string{"train-b", "train-a"} },
			"after[1] invalid"},
		"a wait": {func(s *Spec) { s.PendingTimeout = hour }, ""},
		"a wait below zero": {func(s *Spec) { s.PendingTimeout = -hour },
			"pendingTimeout out-of-range"},
		"images to keep": {func(s *Spec) { s.CommitOnEnd = MaxCommitOnEnd }, ""},
		"more of them": {func(s *Spec) { s.CommitOnEnd = MaxCommitOnEnd + 1 },
			"commitOnEnd out-of-range"},
		"fewer than none": {func(s *Spec) { s.CommitOnEnd = -1 },
			"commitOnEnd out-of-range"},
		"a label of any language": {func(s *Spec) { s.Label = "비전 2" }, ""},
		"the longest label":       {func(s *Spec) { s.Label = strings.Repeat("é", 64) }, ""},
		"a label that is no text": {func(s *Spec) { s.Label = "a\xff" }, "label invalid"},
		"no reclaiming":           {func(s *Spec) { s.Idle = &IdlePolicy{} }, ""},
		"all checks": {func(s *Spec) {
			s.Idle = &IdlePolicy{Lifetime: hour, Network: hour, Use: UsePolicy{Window: hour, GPU: percent(5)}}
		}, ""},
		"a lifetime below zero": {func(s *Spec) { s.Idle = &IdlePolicy{Lifetime: -hour} },
			"idle.lifetime invalid"},
		"a threshold of all": {func(s *Spec) {
			s.Idle = &IdlePolicy{Use: UsePolicy{Window: hour, CPU: percent(100)}}
		}, ""},
		"a threshold of nothing": {func(s *Spec) {
			s.Idle = &IdlePolicy{Use: UsePolicy{Window: hour, CPU: percent(0)}}
		}, "idle.use.cpu invalid"},
		"no window": {func(s *Spec) { s.Idle = &IdlePolicy{Use: UsePolicy{VRAM: percent(5)}} },
			"idle.use.window invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			s := Spec{Image: "a"}
			c.change(&s)
			var got []string
			for _, e := range s.Validate(now, Limits{}) {
				got = append(got, e.Field+" "+string(e.Kind))
				if e.Message == "" || e.Hint == "" && len(e.Said) == 0 {
					t.Errorf("%+v says not what to do", e)
				}
			}
			if want := []string{c.want}; c.want == "" && len(got) > 0 || c.want != "" && !slices.Equal(got, want) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}
