package recipe

import "testing"

func TestJSONIsWrittenAsYAML(t *testing.T) {
	const want = `name: train
count: "12"
n: 12
yes: "true"
empty: []
at: "2026-05-01T12:00:00Z"
list:
  - a: null
  - |-
    two
    lines
`
	got, err := FromJSON([]byte(`{"name":"train","count":"12","n":12,"yes":"true","empty":[],` +
		`"at":"2026-05-01T12:00:00Z","list":[{"a":null},"two\nlines"]}`))
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
}
