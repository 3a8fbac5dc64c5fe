package node

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"slipway/backend/session"
)

func TestOneOfManyBegins(t *testing.T) {
	dir := t.TempDir()
	var begun, refused atomic.Int32
	var starts sync.WaitGroup
	for n := range 20 {
		starts.Go(func() {
			switch err := create(begunFile(dir, "main1"), Begun{Job: "41", Host: "n1", Restarts: n}); {
			case err == nil:
				begun.Add(1)
			case errors.Is(err, fs.ErrExist):
				refused.Add(1)
			default:
				t.Error(err)
			}
			if _, err := ReadBegun(dir, "main1"); err != nil {
				t.Error(err)
			}
		})
	}
	starts.Wait()
	if begun.Load() != 1 || refused.Load() != 19 {
		t.Errorf("%d began and %d were refused", begun.Load(), refused.Load())
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("there are %v, %v", entries, err)
	}
}

func TestBadRecordsAreRefused(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{"", "{", "[]", `{"code":0}`, `{"code":256,"host":"n1"}`, `{"code":-1,"host":"n1"}`,
		`{"code":0,"host":"n1","why":"else"}`, `{"code":0,"host":"n1","job":"a/b"}`, `{"code":0,"host":"../n1"}`,
		`{"code":0,"host":"n1"}` + strings.Repeat(" ", maxRecord)} {
		if err := os.WriteFile(exitFile(dir, "main1"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadExit(dir, "main1"); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%.60q is read: %v", text, err)
		}
	}
	if _, err := ReadExit(filepath.Join(dir, "none"), "main1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a record: %v", err)
	}
}

func TestBadSpecsAreRefused(t *testing.T) {
	good := func() Spec {
		return Spec{Session: "abc", Kernels: []string{"main1"}, Store: "/s", Layers: []string{"sha256:" +
			strings.Repeat("0a", 32)}, Box: Box{Devices: []string{"/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap1"}}}
	}
	if err := good().check(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(s *Spec){
		"session":    func(s *Spec) { s.Session = "../abc" },
		"no kernels": func(s *Spec) { s.Kernels = nil },
		"kernel":     func(s *Spec) { s.Kernels = []string{"a/b"} },
		"digest":     func(s *Spec) { s.Layers[0] = "sha256:../../x" },
		"layers":     func(s *Spec) { s.Layers = make([]string, maxLayers+1) },
		"store":      func(s *Spec) { s.Store = "s" },
		"local":      func(s *Spec) { s.Local = "tmp" },
		"source":     func(s *Spec) { s.Mounts = []session.Mount{{Source: "a", Target: "/b"}} },
		"target":     func(s *Spec) { s.Mounts = []session.Mount{{Source: "/a", Target: ""}} },
		"hidden":     func(s *Spec) { s.Hidden = []string{"x"} },
		"device":     func(s *Spec) { s.Devices = []string{"/dev/../etc/passwd"} },
		"no device":  func(s *Spec) { s.Devices = []string{"/etc/passwd"} },
		"variable":   func(s *Spec) { s.Env = []session.EnvVar{{Name: "A=B"}} },
		"shm":        func(s *Spec) { s.Shm = -1 },
		"processes":  func(s *Spec) { s.Processes = -1 },
	} {
		s := good()
		spoil(&s)
		if s.check() == nil {
			t.Errorf("a bad %s is taken", name)
		}
	}
}
