package session

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
)

func TestPercentilesAreRightToAFifth(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, count := range []int{1, 2, 100, 5000} {
		var all, first, second Latency
		times := make([]time.Duration, count)
		for i := range times {
			times[i] = time.Duration(float64(time.Millisecond) * (1 + 1000*rng.ExpFloat64()))
			all.Add(times[i])
			[]*Latency{&first, &second}[i%2].Add(times[i])
		}
		slices.Sort(times)
		for _, part := range []float64{0.5, 0.99} {
			want := times[max(0, int(part*float64(count)+0.999)-1)]
			if got := all.Percentile(part); float64(got) < float64(want)/1.2 || float64(got) > float64(want)*1.2 {
				t.Errorf("percentile %v of %d is %s, want %s", part, count, got, want)
			}
		}
		first.Merge(second)
		if !reflect.DeepEqual(first, all) || all.Count() != int64(count) {
			t.Errorf("added up: %+v, want %+v", first, all)
		}
	}
}

func TestExtremeTimesAreCounted(t *testing.T) {
	var l Latency
	if l.Percentile(0.5) != 0 {
		t.Errorf("no times have the percentile %s", l.Percentile(0.5))
	}
	for _, d := range []time.Duration{-time.Second, 0, 1, time.Millisecond, 365 * 24 * time.Hour} {
		l.Add(d)
	}
	if l.Count() != 5 || len(l.Steps) > MostLatencySteps || l.Percentile(0.5) > time.Millisecond {
		t.Errorf("they are %+v", l)
	}
}

func TestEnergyForTokensIsUnknownWithoutEither(t *testing.T) {
	use := func(energy int64, tokens int64) (u ServiceUse) {
		u.Completion = tokens
		u.EnergyDynamic = 3 * 3_600_000 * 2 // 6 Wh of work
		u.EnergyIdle = 3_600_000 * 2        // 2 Wh of being kept ready
		if energy == 0 {
			u.EnergyDynamic, u.EnergyIdle = 0, 0
		}
		return u
	}
	if got := use(1, 4000).WhPerThousandTokens(); got == nil || *got != 2 {
		t.Errorf("8 Wh for 4,000 tokens are %v", got)
	}
	for _, u := range []ServiceUse{use(0, 4000), use(1, 0), use(0, 0)} {
		if got := u.WhPerThousandTokens(); got != nil {
			t.Errorf("%d tokens and %d mJ are %v", u.Completion, u.EnergyDynamic, *got)
		}
	}
}
