// Package simulated gives tests an agent that runs on a simulated engine.
package simulated

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"slipway/backend/agent"
	"slipway/backend/engine"
	"slipway/backend/engine/sim"
	"slipway/backend/hostfs"
	"slipway/backend/store"
)

// Open opens an agent in a folder of the test and runs it until the test ends. change, if not nil, changes its
// configuration, such as to another engine, which is closed with the agent.
func Open(t testing.TB, change func(*agent.Config)) *agent.Agent {
	t.Helper()
	dir := t.TempDir()
	books, err := store.Open(store.Config{Path: filepath.Join(dir, "agent.db")})
	if err != nil {
		t.Fatal(err)
	}
	config := agent.Config{Name: "lab", Dir: dir, Store: books, Owner: "ada", UID: os.Getuid(), GID: os.Getgid(),
		Version: "test"}
	if change != nil {
		change(&config)
	}
	if config.Engine.Host == nil {
		config.Host.Files = hostfs.FS{Root: filepath.Join(dir, "disk"), Home: "/home/ada"}
		if err := sim.MakeDisk(config.Host.Files.Root, "ada", 1); err != nil {
			t.Fatal(err)
		}
		simulated, err := sim.Open(sim.Config{Dir: filepath.Join(dir, "engine"), Data: dir,
			Instance: books.Instance(), Speed: 200})
		if err != nil {
			t.Fatal(err)
		}
		config.Engine = engine.Of(simulated)
	}
	a, err := agent.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.Run(ctx) //nolint:errcheck // ends with ctx
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		for _, part := range []interface{ Close() error }{a, config.Engine, books} {
			if err := part.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return a
}
