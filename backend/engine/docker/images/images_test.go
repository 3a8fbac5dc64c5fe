package images

import (
	"slices"
	"testing"
)

func TestNamesOfAnImage(t *testing.T) {
	s := New(nil, "")
	for name, c := range map[string]struct{ tags, digests, want []string }{
		"its tags": {[]string{"python:3.12", "<none>:<none>"}, []string{"python@sha256:1"},
			[]string{"python:3.12"}},
		"its digests where it has no tag": {[]string{"<none>:<none>"}, []string{"python@sha256:1"},
			[]string{"python@sha256:1"}},
		"none":                           {nil, []string{"<none>@<none>"}, nil},
		"none for the empty one":         {[]string{"slipway-empty:1"}, []string{"slipway-empty@sha256:1"}, nil},
		"only those that others gave it": {[]string{"slipway-empty:1", "scratch:1"}, nil, []string{"scratch:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := s.names(c.tags, c.digests); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
