package vault_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/backend/session"
	"slipway/backend/vault"
)

func TestWithoutAKeyringValuesAreInAPrivateFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets.json")
	v := vault.New("", path)
	if err := v.Delete("variable/NONE"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a file is written for nothing")
	}
	for _, value := range []string{"first", "two\nlines"} {
		kept, err := v.Set("variable/A", value)
		if err != nil || kept != vault.InFile {
			t.Fatalf("kept in %q, %v", kept, err)
		}
		if got, err := vault.New("", path).Get("variable/A", kept); got != value || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v", info.Mode(), err)
	}
	if _, err := v.Get("variable/B", vault.InFile); session.CodeOf(err) != session.CodeSettingsFailed {
		t.Errorf("a value that is not there: %v", err)
	}
	if err := v.Delete("variable/A"); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); err != nil || strings.Contains(string(data), "lines") {
		t.Errorf("after the deletion: %q, %v", data, err)
	}
}

func TestABrokenFileIsNotOverwritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets.json")
	if err := os.WriteFile(path, []byte("{half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := vault.New("", path).Set("variable/A", "b"); session.CodeOf(err) != session.CodeSettingsFailed {
		t.Errorf("got %v", err)
	}
	if data, _ := os.ReadFile(path); string(data) != "{half" {
		t.Errorf("the file is now %q", data)
	}
}
