package gpu

import (
	"encoding/json"
	"testing"
)

func TestRequestsAreWrittenAsTheyAreRead(t *testing.T) {
	for text, want := range map[string]Request{
		"0.5": {Shares: 500}, "1.5": {Shares: 1500}, "1": {Devices: 1}, "2": {Devices: 2},
		"mig:1g.10gb": {Profile: "1g.10gb", Count: 1}, "mig:3g.20gb:2": {Profile: "3g.20gb", Count: 2},
		"vram:12g": {Memory: 12 * GiB}, "vram:1500m": {Memory: 1500 * MiB}, "none": {},
	} {
		got, err := ParseRequest(text)
		if err != nil || got != want {
			t.Errorf("%q is read as %+v, %v", text, got, err)
		}
		if got.String() != text {
			t.Errorf("%q is written as %q", text, got.String())
		}
	}
	for _, text := range []string{"-1", "0.0001", "half", "mig:", "mig:1g:0", "vram:", "vram:0", "vram:-1g", "NaN",
		"1e9", "2000", "0.0", "+Inf"} {
		if r, err := ParseRequest(text); code(err) != CodeRequestInvalid {
			t.Errorf("%q is read as %+v, %v", text, r, err)
		}
	}
}

func TestRequestsNameOneMode(t *testing.T) {
	for _, r := range []Request{
		{Shares: 100, Devices: 1}, {Devices: 1, Memory: GiB}, {Profile: "a", Shares: 1}, {Count: 2}, {Shares: -1},
		{Profile: "a", Count: -1},
	} {
		if code(r.Validate()) != CodeRequestInvalid {
			t.Errorf("%+v is valid", r)
		}
	}
}

func TestSharesAreReadFromNumbersAndTexts(t *testing.T) {
	for text, want := range map[string]Share{`500`: 500, `"0.5"`: 500, `"2"`: 2000, `"0.125"`: 125} {
		var s Share
		if err := json.Unmarshal([]byte(text), &s); err != nil || s != want {
			t.Errorf("%s is read as %d, %v", text, s, err)
		}
	}
	for _, text := range []string{`-1`, `0.5`, `"x"`, `"0.0005"`, `99999999`, `null`} {
		var s Share
		if err := json.Unmarshal([]byte(text), &s); err == nil {
			t.Errorf("%s is read as %d", text, s)
		}
	}
}

func TestSharesOfMemoryNeverSumToMoreThanAll(t *testing.T) {
	for _, all := range []Bytes{1, 999, 1001, 24*GiB - 1, 141*GiB + 7, 1 << 60} {
		for _, n := range []Share{1, 3, 10, 1000} {
			part := (WholeDevice / n).Of(all)
			if part*Bytes(n) > all {
				t.Errorf("%d parts of %s are %s each", n, all, part)
			}
		}
		if WholeDevice.Of(all) != all {
			t.Errorf("a whole of %s is %s", all, WholeDevice.Of(all))
		}
	}
}

func TestLevelsAreStatedByWhatWasProbed(t *testing.T) {
	able := Device{Capabilities: Capabilities{MemoryLimit: Probe{State: Yes}, MPS: Probe{State: Yes},
		ProcessMemory: Probe{State: Yes}}}
	share := Grant{Share: 500}
	for _, c := range []struct {
		device Device
		grant  Grant
		with   Enforcement
		want   Level
	}{
		{able, Grant{Instance: "MIG-1"}, Enforcement{}, LevelHardware},
		{able, Grant{Whole: true}, Enforcement{}, LevelHard},
		{able, share, Enforcement{HardLimit: true, MPS: true, Guard: true}, LevelHard},
		{able, share, Enforcement{MPS: true, Guard: true}, LevelPerProcess},
		{able, share, Enforcement{Guard: true}, LevelWatched},
		{able, share, Enforcement{}, LevelNone},
		{Device{}, share, Enforcement{HardLimit: true, MPS: true, Guard: true}, LevelNone},
	} {
		if got := LevelOf(c.device, c.grant, c.with); got != c.want {
			t.Errorf("%+v with %+v is %s, want %s", c.grant, c.with, got, c.want)
		}
	}
}

// "1.0" and "1" ask for the same.
func TestADeviceIsADeviceHoweverItIsWritten(t *testing.T) {
	for _, n := range []string{"1", "2", "8"} {
		plain, err := ParseRequest(n)
		must(t, err)
		for _, text := range []string{n + ".0", n + ".", n + ".000", " " + n + ".0 "} {
			if r, err := ParseRequest(text); err != nil || r != plain {
				t.Errorf("%q is %+v (%v) and %q is %+v", text, r, err, n, plain)
			}
		}
	}
}
