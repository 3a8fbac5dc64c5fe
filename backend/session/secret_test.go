package session

import (
	"regexp"
	"strings"
	"testing"
)

func TestSecretName(t *testing.T) {
	for name, want := range map[string]bool{
		"AWS_SECRET_ACCESS_KEY": true, "hf_token": true, "DB_PASSWORD": true, "PGPASS": true,
		"EPOCHS": false, "PATH": false, "PASSES": false,
	} {
		if got := SecretName(name); got != want {
			t.Errorf("SecretName(%q) = %v, want %v", name, got, want)
		}
	}
}

func FuzzSecretNameMatchesThePattern(f *testing.F) {
	pattern := regexp.MustCompile("(?i)" + SecretPattern)
	for word := range strings.SplitSeq(secretWords+"|PASS|_PW|PIN|SEED", "|") {
		for _, name := range []string{word, "A_" + word, word + "S", "_" + strings.ToLower(word) + "_1", "X" + word} {
			f.Add(name)
		}
	}
	f.Fuzz(func(t *testing.T, name string) {
		name = strings.Map(func(r rune) rune { return min(r, '~') }, name) // names of variables are ASCII
		if got, want := SecretName(name), pattern.MatchString(name); got != want {
			t.Errorf("SecretName(%q) = %v, and the pattern says %v", name, got, want)
		}
	})
}

func TestRedactedLeavesTheOriginalAlone(t *testing.T) {
	spec := Spec{Env: []EnvVar{{Name: "TOKEN", Value: "t"}, {Name: "A", Value: "b"}, {Name: "KEY"}}}
	got := spec.Redacted("•")
	if got.Env[0].Value != "•" || got.Env[1].Value != "b" || got.Env[2].Value != "" {
		t.Fatalf("redacted to %+v", got.Env)
	}
	if spec.Env[0].Value != "t" {
		t.Fatal("the original lost its value")
	}
}
