package autostart

import (
	"errors"
	"io/fs"
	"testing"

	"golang.org/x/sys/windows/registry"

	"slipway/backend/place"
)

// value is what Windows runs at login, or the error of reading it.
func value(t *testing.T) (string, error) {
	t.Helper()
	key, err := registry.OpenKey(registry.CURRENT_USER, runKey, registry.QUERY_VALUE)
	if err != nil {
		t.Fatal(err)
	}
	defer key.Close()
	command, _, err := key.GetStringValue(runValue)
	return command, err
}

func TestTheValueIsWrittenAndRemoved(t *testing.T) {
	home, err := place.FindHome(nil)
	if err != nil {
		t.Fatal(err)
	}
	e := New(Config{System: "windows", Program: `C:\Program Files\Slipway\slipway.exe`, Home: home})
	set(t, e, true)
	const want = `"C:\Program Files\Slipway\slipway.exe" serve --quiet --detach`
	if command, err := value(t); err != nil || command != want {
		t.Errorf("it runs %q, %v", command, err)
	}
	set(t, e, false)
	set(t, e, false) // there is nothing to remove
	if command, err := value(t); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it still runs %q, %v", command, err)
	}
}
