package slurm

import (
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"slipway/gpu"
)

func TestHostsAreExpanded(t *testing.T) {
	for list, want := range map[string][]string{
		"":               nil,
		"(null)":         nil,
		"None assigned":  nil,
		"n1":             {"n1"},
		"n[1-3]":         {"n1", "n2", "n3"},
		"n[08-11]":       {"n08", "n09", "n10", "n11"},
		"n[1,3-4],login": {"n1", "n3", "n4", "login"},
		"n[1-3,07-09],gpu-a[01-02]": {"n1", "n2", "n3", "n07", "n08", "n09", "gpu-a01",
			"gpu-a02"},
		"r[1-2]n[0-1]": {"r1n0", "r1n1", "r2n0", "r2n1"},
		"n[1-2]-ib":    {"n1-ib", "n2-ib"},
		"[1-2]":        {"1", "2"},
	} {
		if got, err := expandHosts(list); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %v instead of %v: %v", list, got, want, err)
		}
	}
}

func TestWhatIsNoListOfHostsIsRefused(t *testing.T) {
	for _, list := range []string{"n[1-2", "n1]", "n[2-1]", "n[]", "n[a]", "n[1-]", "n[-1]", ",", "n1,,n2", "n[1]]",
		"n[0-99999999]", "n[0-65535]m[0-1]", "n[18446744073709551615]", "n 1", "n\x1b[1]", "n[+1]",
		"n" + strings.Repeat("[0-9]", 1000), strings.Repeat("n", maxList+1),
		"n[" + strings.Repeat("0", 100) + "-9]"} {
		if got, err := expandHosts(list); err == nil {
			t.Errorf("%.60q is %d names", list, len(got))
		}
	}
}

func TestNumbersAreExpanded(t *testing.T) {
	for list, want := range map[string][]int{"0": {0}, "0-1,4": {0, 1, 4}, "": nil, "1-x": nil, "0-9999999": nil,
		"70000": nil} {
		if got := expandNumbers(list); !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %v", list, got)
		}
	}
}

func TestSpans(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"30": 30 * time.Minute, "0:10": 10 * time.Second, "30:00": 30 * time.Minute, "1:30:00": 90 * time.Minute,
		"2-01:30:00": 2*day + 90*time.Minute, "1-12": day + 12*time.Hour,
		"1-12:30":   day + 12*time.Hour + 30*time.Minute,
		"UNLIMITED": Unlimited, "infinite": Unlimited, "INVALID": 0, "NOT_SET": 0, "Partition_Limit": 0, "N/A": 0,
		"": 0, "-1": 0, "1:2:3:4": 0, "a:b": 0, "-": 0, "99999999999": 0, "999999-00:00:00": 36500 * day,
	} {
		if got := span(text); got != want {
			t.Errorf("%q is %s instead of %s", text, got, want)
		}
	}
	for limit, want := range map[time.Duration]string{time.Second: "1", time.Minute: "1", time.Minute + 1: "2",
		36 * time.Hour: "2160", Unlimited: "UNLIMITED"} {
		if got := inMinutes(limit); got != want {
			t.Errorf("%s is %s minutes", limit, got)
		}
	}
	if seconds("30 sec") != 30*time.Second || seconds("none") != 0 {
		t.Error("a length of time of the configuration is wrong")
	}
}

func TestMoments(t *testing.T) {
	local := time.Date(2026, 11, 26, 23, 26, 57, 0, time.Local)
	for text, want := range map[string]time.Time{"2026-11-26T23:26:57": local, "1700000000": time.Unix(1700000000, 0),
		"N/A": {}, "Unknown": {}, "None": {}, "": {}, "0": {}, "-5": {}, "2026-11-26": {}, "99999999999999999": {},
		"2026-13-26T23:26:57": {}} {
		if got := moment(text); !got.Equal(want) {
			t.Errorf("%q is %s instead of %s", text, got, want)
		}
	}
}

func TestMemory(t *testing.T) {
	for text, want := range map[string]gpu.Bytes{"64000": 64000 * gpu.MiB, "64000+": 64000 * gpu.MiB, "2G": 2 * gpu.GiB,
		"300M": 300 * gpu.MiB, "": 0, "-1": 0, "x": 0} {
		if got := mebibytes(text); got != want {
			t.Errorf("%q is %s", text, got)
		}
	}
}

func TestTextIsPrintableAndBounded(t *testing.T) {
	for text, want := range map[string]string{" a\x1b[31m\tb\n": "a [31m b", "한국어": "한국어", "\xff\xfea": "a",
		"a\u202eb": "a b", "abcdefghijklmnopqrstuvwxyz": "abcdefghijklmnopqrst",
		"한국어한국어한국어": "한국어한국어"} {
		if got := clean(text, 20); got != want {
			t.Errorf("%q is %q", text, got)
		}
	}
	if got := words("a,(null),b\x00,,c"); !reflect.DeepEqual(got, []string{"a", "b", "c"}) {
		t.Errorf("names %v", got)
	}
	said := cleanLines("sbatch: error: Name a project.\x07\n" +
		"sbatch: error: Batch job submission failed: Unspecified error\n\n")
	if said != "Name a project.\nUnspecified error" {
		t.Errorf("said %q", said)
	}
}

func FuzzText(f *testing.F) {
	f.Add("n[1-3,07-09],gpu-a[01-02]")
	f.Add("2-01:30:00")
	f.Add("2026-11-26T23:26:57")
	f.Add("1,2\x1f\x00\xff")
	f.Fuzz(func(t *testing.T, text string) {
		names, err := expandHosts(text)
		if err != nil && names != nil || len(names) > maxHosts {
			t.Errorf("%d names: %v", len(names), err)
		}
		for _, name := range names {
			if name == "" || strings.ContainsAny(name, "[], ") || strings.ContainsFunc(name, foreign) {
				t.Errorf("%q is the name of a node", name)
			}
		}
		if span(text) < 0 || mebibytes(text) < 0 || number(text) < 0 || priority(text) < 0 || seconds(text) < 0 {
			t.Error("an amount is negative")
		}
		if at := moment(text); !at.IsZero() && at.Unix() <= 0 {
			t.Errorf("time %s", at)
		}
		for _, short := range append(words(text), clean(text, 20), word(text), cleanLines(text)) {
			if !utf8.ValidString(short) || strings.ContainsFunc(strings.ReplaceAll(short, "\n", ""), foreign) {
				t.Errorf("%q cannot be shown", short)
			}
		}
		if short := clean(text, 20); len(short) > 20 || clean(short, 20) != short {
			t.Errorf("%q is cleaned twice", short)
		}
	})
}
