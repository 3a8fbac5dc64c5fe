//go:build unix

package daemon

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"slipway/backend/place"
)

func FuzzSettings(f *testing.F) {
	f.Add([]byte(`{"engine":"sim","listen":"0.0.0.0:7442","env":{"DOCKER_HOST":"unix:///run/docker.sock"}}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, data []byte) {
		home := place.Home{Dir: t.TempDir()}
		if err := os.WriteFile(home.Join(settingsFile), data, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := LoadSettings(home)
		if err != nil {
			return
		}
		if err := s.Save(home); err != nil {
			t.Fatal(err)
		}
		again, err := LoadSettings(home)
		one, _ := json.Marshal(s)
		two, _ := json.Marshal(again)
		if err != nil || !bytes.Equal(one, two) {
			t.Errorf("%s was kept as %s: %v", one, two, err)
		}
	})
}
