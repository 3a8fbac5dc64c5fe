package local

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/backend/place"
	"slipway/backend/session"
	"slipway/backend/store"
)

func TestChooseEngine(t *testing.T) {
	t.Run("what is asked for is taken", func(t *testing.T) {
		for _, kind := range []string{EngineDocker, EngineSim, EngineSlurm} {
			if c, err := chooseEngine(t.Context(), place.Home{Dir: t.TempDir()}, kind); err != nil || c.kind != kind ||
				c.note != "" {
				t.Errorf("%s: %+v, %v", kind, c, err)
			}
		}
		if _, err := chooseEngine(t.Context(), place.Home{Dir: t.TempDir()}, "podman"); session.CodeOf(
			err) != "server_start_invalid" {
			t.Errorf("podman: %v", err)
		}
	})
	t.Run("without Docker auto simulates and says so", func(t *testing.T) {
		t.Setenv("DOCKER_HOST", "unix://"+filepath.Join(t.TempDir(), "none.sock"))
		c, err := chooseEngine(t.Context(), place.Home{Dir: t.TempDir()}, EngineAuto)
		if err != nil || c.kind != EngineSim || !strings.Contains(c.note, "Docker") {
			t.Fatalf("%+v, %v", c, err)
		}
		e, err := c.open(t.TempDir(), "instance", nil, nil, nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		info, err := e.Info(t.Context())
		if err != nil || len(info.Warnings) == 0 || info.Warnings[len(info.Warnings)-1].Text != c.note {
			t.Errorf("the machine says %+v, %v", info.Warnings, err)
		}
	})
	t.Run("a login node of Slurm never simulates", func(t *testing.T) {
		t.Setenv("DOCKER_HOST", "unix://"+filepath.Join(t.TempDir(), "none.sock"))
		commands := t.TempDir()
		t.Setenv("PATH", commands)
		if c, err := chooseEngine(t.Context(), place.Home{Dir: t.TempDir()}, ""); err != nil || c.kind != EngineDocker {
			t.Errorf("without Slurm: %+v, %v", c, err)
		}
		if err := os.WriteFile(filepath.Join(commands, "sbatch"), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{EngineAuto, ""} {
			if c, err := chooseEngine(t.Context(), place.Home{Dir: t.TempDir()}, kind); err != nil ||
				c.kind != EngineSlurm {
				t.Errorf("%q: %+v, %v", kind, c, err)
			}
		}
	})
	t.Run("while sessions live in Docker auto waits for it", func(t *testing.T) {
		t.Setenv("DOCKER_HOST", "unix://"+filepath.Join(t.TempDir(), "none.sock"))
		home := place.Home{Dir: t.TempDir()}
		books, err := store.Open(store.Config{Path: home.Join("agent.db")})
		if err != nil {
			t.Fatal(err)
		}
		s := session.Session{ID: "aaaaaaaaaaaa", Name: "train", Owner: "ada", Status: session.Pending,
			Spec: session.Spec{Image: "a:1"}}
		if err := errors.Join(books.Update(func(tx *store.Tx) error { return tx.Create(&s, "") }),
			books.Close()); err != nil {
			t.Fatal(err)
		}
		if c, err := chooseEngine(t.Context(), home, EngineAuto); err != nil || c.kind != EngineDocker || c.note == "" {
			t.Errorf("%+v, %v", c, err)
		}
	})
}

func TestPersonIsTheOneBehindSudo(t *testing.T) {
	if os.Getuid() != 0 {
		if uid, _ := User(); uid != os.Getuid() {
			t.Errorf("uid %d", uid)
		}
		return
	}
	t.Setenv("SUDO_UID", "1234")
	t.Setenv("SUDO_GID", "1235")
	if uid, gid := User(); uid != 1234 || gid != 1235 {
		t.Errorf("ids %d and %d", uid, gid)
	}
	t.Setenv("SUDO_UID", "root")
	if uid, gid := User(); uid != 0 || gid != os.Getgid() {
		t.Errorf("ids %d and %d", uid, gid)
	}
}
