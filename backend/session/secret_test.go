package session

import "testing"

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
