//go:build unix

package agent

import (
	"io"
	"net"
	"os/exec"
	"sync"
	"testing"

	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
)

// listen opens a port of this machine that leads to the services of the agent, until the test ends.
func (m modelServer) listen() (address string) {
	m.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		m.t.Fatal(err)
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			router, err := m.agent.DialService(m.t.Context())
			if err != nil {
				_ = client.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{client, router}, {router, client}} {
				conns.Go(func() {
					_, _ = io.Copy(way[1], way[0])
					_ = way[0].Close()
					_ = way[1].Close()
				})
			}
		}
	})
	m.t.Cleanup(func() {
		_ = listener.Close()
		conns.Wait()
	})
	return "http://" + listener.Addr().String() + "/v1"
}

// TestTheClientLibraryOfOpenAI runs the client that people use, unchanged, against the real model server.
func TestTheClientLibraryOfOpenAI(t *testing.T) {
	t.Parallel()
	image := enginetest.RequireModel(t)
	m := newReal(t, t.TempDir(), asPerson).serveModel("tiny", image, session.ServiceWish{Replicas: 1})
	m.awaitService("ready", ready)
	run := func(name string, args ...string) {
		t.Helper()
		command := exec.Command("node", append([]string{"../../frontend/e2e/foreignClient.mjs", name}, args...)...)
		command.Env = append(command.Environ(), "OPENAI_BASE_URL="+m.listen(), "OPENAI_API_KEY="+m.token)
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
	run("tiny")
	m.deploy(modelSpec(image, "--embeddings", "--pooling", "mean"))
	m.awaitService("one that embeds", func(s session.Service) bool { return ready(s) && healthy(s, 2) == 1 })
	run("--embed", "tiny")
	m.awaitService("idle", func(s session.Service) bool { return s.Traffic.Outstanding == 0 })
}
