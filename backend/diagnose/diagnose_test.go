package diagnose

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const token = "q3x7kb2m5n7q3x7kb2m5n7q3x7kb2m5n7q3x7kb2m5n7abcd"

func TestNoSecretIsLeft(t *testing.T) {
	r := NewRedactor("/home/ada", "the-very-token")
	for name, text := range map[string]string{
		"the token by its value": "it said the-very-token twice: the-very-token SECRET1",
		"a header":               "Authorization: Bearer SECRET",
		"a login address":        "http://127.0.0.1:7421/login?code=SECRET&x=1",
		"a variable":             `WANDB_API_KEY=SECRET`,
		"a variable in quotes":   `env="HF_TOKEN=SECRET a" DB_PASSWORD="SECRET two"`,
		"JSON":                   `{"password": "SECRET", "name": "bert"}`,
		"JSON with an escape":    `{"api_token":"SEC\"SECRET"}`,
		"YAML":                   "env:\n  MY_SECRET: SECRET\n",
		"a login in an address":  "https://ada:SECRET@registry.example/v2/",
		"a private key": "-----BEGIN OPENSSH PRIVATE KEY-----\nSECRET\nSECRET\n-----END OPENSSH PRIVATE " +
			"KEY-----",
		"a private key that is cut": "-----BEGIN PRIVATE KEY-----\nSECRET",
		"a token of GitHub":         "cloning with ghp_SECRETSECRETSECRET",
		"what looks like a token":   "sent " + token,
	} {
		t.Run(name, func(t *testing.T) {
			got := r.Text(text)
			for _, secret := range []string{"SECRET\n", "SECRET ", "=SECRET", "\"SECRET", ":SECRET", ": SECRET",
				"SECRETSECRET", "the-very-token", token, "r SECRET"} {
				if strings.Contains(got+"\n", secret) && name != "the token by its value" {
					t.Errorf("%q is left in %q", secret, got)
				}
			}
			if strings.Contains(got, "the-very-token") {
				t.Errorf("the token is left in %q", got)
			}
		})
	}
}

func TestWhatAReportIsAboutStays(t *testing.T) {
	r := NewRedactor("/home/ada")
	for text, want := range map[string]string{
		`level=ERROR msg="no image" code=image_pull_failed`:     "",
		"image sha256:" + strings.Repeat("0123456789abcdef", 4): "",
		"GPU-8f0e5c0a-1111-2222-3333-444455556666 holds 4 GiB":  "",
		"/home/ada/.local/share/slipway/settings.json":          "~/.local/share/slipway/settings.json",
	} {
		if got := r.Text(text); got != cmp.Or(want, text) {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slipway.log")
	if got, err := NewRedactor("").Tail(path, 5); err != nil || len(got) != 0 {
		t.Fatalf("without a log: %v, %v", got, err)
	}
	if err := os.WriteFile(path, []byte("one\ntwo\nthree token=abc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := NewRedactor("").Tail(path, 2); err != nil || strings.Join(got, "|") != "two|three token="+mask {
		t.Fatalf("%v, %v", got, err)
	}
	long := strings.Repeat(strings.Repeat("x", 99)+"\n", 2*tailMost/100)
	if err := os.WriteFile(path, []byte(long+"last\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := NewRedactor("").Tail(path, 1<<20); err != nil || got[len(got)-1] != "last" || len(got[0]) != 99 ||
		len(got) > tailMost/100+1 {
		t.Fatalf("%d lines, %v", len(got), err)
	}
}
