//go:build linux

package backend

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"slipway/backend/local"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

// fill puts finished sessions into the books of the simulated engine in dir.
func fill(t testing.TB, dir string, count int) {
	t.Helper()
	books, err := store.Open(store.Config{Path: filepath.Join(dir, "sim", "agent.db")})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now().Add(-time.Hour)
	err = books.Update(func(tx *store.Tx) error {
		for i := range count {
			s := session.Session{
				ID: session.ID(fmt.Sprintf("a%011d", i)), Name: fmt.Sprintf("run-%04d", i), Owner: "ada",
				Agent: local.AgentName, Status: session.Pending, CreatedAt: begin.Add(time.Duration(i) * time.Second),
				Spec: session.Spec{Type: session.Batch, Image: "python:3.13", Command: "python train.py",
					Env:       []session.EnvVar{{Name: "TOKEN", Value: "x"}, {Name: "SEED", Value: "1"}},
					Resources: session.Resources{CPU: 1, Memory: gpu.GiB},
					Mounts:    []session.Mount{{Source: "/data", Target: "/home/work/data"}}},
				Allocation: session.Allocation{
					Kernels: []session.Kernel{{Name: session.MainKernel, Hostname: "main1"}},
				},
			}
			if err := tx.Create(&s, ""); err != nil {
				return err
			}
			s.Status, s.Reason = session.Cancelled, session.ReasonUser
			if err := tx.Put(&s); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, books.Close()); err != nil {
		t.Fatal(err)
	}
}

// How long this takes is measured by build/bench.
func TestThousandFinishedSessionsAreListedWhole(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "sim"), 0o700); err != nil {
		t.Fatal(err)
	}
	fill(t, dir, 1000)
	r := start(t, dir, 0)
	var list json.RawMessage
	r.call(t, "GET", "/api/v1/sessions?state=finished", "", &list)
	if n := bytes.Count(list, []byte(`"status":"CANCELLED"`)); n != 1000 {
		t.Fatalf("%d sessions", n)
	}
}
