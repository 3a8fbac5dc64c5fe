package place

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestHomeIsWhereTheEnvironmentSays(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		env  map[string]string
		want string
	}{
		"SLIPWAY_HOME above all": {map[string]string{"SLIPWAY_HOME": dir, "XDG_DATA_HOME": "/x", "HOME": "/h"},
			dir},
		"XDG_DATA_HOME before HOME": {map[string]string{"XDG_DATA_HOME": "/x", "HOME": "/h"}, "/x/slipway"},
		"a relative one is ignored": {map[string]string{"XDG_DATA_HOME": "x", "HOME": "/h"},
			"/h/.local/share/slipway"},
		"HOME where nothing else is":  {map[string]string{"HOME": "/h"}, "/h/.local/share/slipway"},
		"nothing at all is a failure": {map[string]string{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			home, err := FindHome(func(key string) string { return c.env[key] })
			if home.Dir != c.want || (err != nil) != (c.want == "") {
				t.Errorf("FindHome = %q, %v; want %q", home.Dir, err, c.want)
			}
		})
	}
}

func TestTokenAndServingAreForTheirOwnerAlone(t *testing.T) {
	home := Home{t.TempDir()}
	if err := home.SaveToken("secret"); err != nil {
		t.Fatal(err)
	}
	if err := home.SaveServing(Serving{PID: 7, Port: 7421, URL: "http://127.0.0.1:7421"}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{home.tokenFile(), home.servingFile()} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v; want 0600", path, info.Mode(), err)
		}
	}
	token, err := home.Token()
	if err != nil || token != "secret" {
		t.Errorf("Token = %q, %v", token, err)
	}
	serving, err := home.Serving()
	if err != nil || serving.PID != 7 || serving.URL != "http://127.0.0.1:7421" {
		t.Errorf("Serving = %+v, %v", serving, err)
	}
	if left, _ := filepath.Glob(home.Join("*.*.*")); len(left) > 0 {
		t.Errorf("temporary files are left: %v", left)
	}
	if err := errors.Join(home.RemoveServing(), home.RemoveServing()); err != nil {
		t.Errorf("removing it twice: %v", err)
	}
	if _, err := home.Serving(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Serving after its removal: %v, want fs.ErrNotExist", err)
	}
}

func TestOnlyOneHoldsTheLock(t *testing.T) {
	home := Home{filepath.Join(t.TempDir(), "new")}
	first, err := home.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := home.Lock(); !errors.Is(err, ErrLocked) {
		t.Errorf("a second Lock: %v, want ErrLocked", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := home.Lock()
	if err != nil {
		t.Fatalf("Lock after Close: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}
