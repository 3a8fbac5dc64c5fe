//go:build linux

package backend

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/backend/agentrpc"
	"slipway/backend/daemon"
	"slipway/backend/local"
	"slipway/backend/place"
	"slipway/backend/service"
	"slipway/backend/session"
	"slipway/tunnel"
	"slipway/tunnel/secure"
)

// servedAgent is a daemon of the simulated engine in this process.
func servedAgent(t *testing.T, settings daemon.Settings) (place.Home, *daemon.Client) {
	t.Helper()
	home := place.Home{Dir: t.TempDir()}
	settings.Engine = local.EngineSim
	ready, ended := make(chan daemon.Status, 1), make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		ended <- service.RunAgent(ctx, service.AgentConfig{Home: home, Settings: settings, Log: discard(),
			Ready: func(s daemon.Status) { ready <- s }})
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the agent ended with %v", err)
			}
		case <-time.After(patience):
			t.Error("the agent does not end")
		}
	})
	select {
	case status := <-ready:
		if status.Role != daemon.RoleAgent || status.PID != os.Getpid() {
			t.Errorf("status %+v", status)
		}
	case err := <-ended:
		t.Fatalf("the agent did not start: %v", err)
	}
	c, err := daemon.Connect(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	return home, c
}

// dialFunc dials carriers.
type dialFunc func(ctx context.Context) (net.Conn, error)

func (f dialFunc) Dial(ctx context.Context, _ bool) (net.Conn, error) { return f(ctx) }

func reach(t *testing.T, dialer tunnel.Dialer) *agentrpc.Client {
	t.Helper()
	up, err := tunnel.Dial(t.Context(), dialer, tunnel.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = up.Close() })
	return agentrpc.NewClient(agentrpc.ClientConfig{Name: func() string { return "far" }, Opener: up})
}

func TestAgentByItselfIsReachedByItsPerson(t *testing.T) {
	home, control := servedAgent(t, daemon.Settings{Env: map[string]string{"SLIPWAY_TEST_OF_AGENT": "1"}})
	far := reach(t, dialFunc(func(ctx context.Context) (net.Conn, error) { return daemon.Dial(ctx, home) }))
	machine, err := far.Machine(t.Context())
	if err != nil || machine.Engine != local.EngineSim {
		t.Fatalf("%+v, %v", machine, err)
	}
	launched, err := far.Launch(t.Context(),
		session.LaunchRequest{Key: "k", Spec: session.Spec{Name: "far-one", Image: "python:3.12",
			Type: session.Interactive, Resources: session.Resources{CPU: 1, Memory: 1 << 30}}})
	if err != nil {
		t.Fatal(err)
	}
	if status, err := control.Status(t.Context()); err != nil || status.Live != 1 {
		t.Errorf("status %+v, %v", status, err)
	}
	if os.Getenv("SLIPWAY_TEST_OF_AGENT") != "1" {
		t.Error("its settings' variables are not set")
	}
	if checks, err := far.Doctor(t.Context()); err != nil || len(checks) < 4 {
		t.Errorf("doctor: %+v, %v", checks, err)
	}
	if listing, err := far.ListDirectories(t.Context(), "/data"); err != nil || len(listing.Entries) != 2 {
		t.Errorf("directories: %+v, %v", listing, err)
	}
	if listing, err := far.ListDirectories(t.Context(), home.Dir); session.CodeOf(err) != "file_use_not-found" {
		t.Errorf("a directory of this computer: %+v, %v", listing, err)
	}
	t.Run("it takes no clients where it does not listen", func(t *testing.T) {
		_, err := control.PairCode(t.Context(), session.PairRequest{})
		if session.CodeOf(err) != "agent_pair_unavailable" {
			t.Errorf("%v", err)
		}
	})
	t.Run("a control plane of the same folder is told of it", func(t *testing.T) {
		err := service.Run(t.Context(), service.Config{Home: home, Engine: local.EngineSim, Log: discard()})
		if e := session.AsError(err, ""); e.Code != "server_start_conflict" ||
			!strings.Contains(e.Hint, "slipway agent stop") {
			t.Errorf("%v", err)
		}
	})
	t.Run("its sessions end when that is asked for", func(t *testing.T) {
		if err := control.EndSessions(t.Context()); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
			if status, err := control.Status(t.Context()); err == nil && status.Live == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("they do not end")
			}
		}
		if s, err := far.Get(t.Context(), launched.ID); err != nil || !s.Status.Terminal() {
			t.Errorf("%+v, %v", s.Status, err)
		}
	})
	t.Run("stopped, it says so to whoever comes", func(t *testing.T) {
		if err := control.StopAndWait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := daemon.Connect(t.Context(), home); !errors.Is(err, daemon.ErrNotRunning) {
			t.Errorf("%v", err)
		}
		if left, _ := filepath.Glob(home.Join("*.sock")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

func TestPairedClientsReachTheAgentUntilRevoked(t *testing.T) {
	_, control := servedAgent(t, daemon.Settings{Listen: "127.0.0.1:0"})
	code, err := control.PairCode(t.Context(), session.PairRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := control.PairCode(t.Context(), session.PairRequest{Owner: "somebody", Role: "god"}); session.CodeOf(
		err) != session.CodeAgentInvalid {
		t.Errorf("a code for a role that there is not: %v", err)
	}
	address, err := secure.ParseAddress(code.Address)
	if err != nil {
		t.Fatal(err)
	}
	identity, err := secure.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	dial := secure.DialConfig{Identity: identity, Address: address}
	paired, err := secure.Pair(t.Context(), secure.PairConfig{Dial: dial, Code: code.Code, Name: "laptop"})
	if err != nil || paired.Key != code.Key {
		t.Fatalf("%+v, %v", paired, err)
	}
	dial.Key = paired.Key
	dialer, err := secure.NewDialer(dial)
	if err != nil {
		t.Fatal(err)
	}
	far := reach(t, dialer)
	if _, err := far.Machine(t.Context()); err != nil {
		t.Fatal(err)
	}
	clients, err := control.PairedClients(t.Context())
	if err != nil || len(clients) != 1 || clients[0].Name != "laptop" || clients[0].Key != identity.Fingerprint() ||
		clients[0].Live == 0 {
		t.Fatalf("%+v, %v", clients, err)
	}
	if err := control.RevokeClient(t.Context(), "desktop"); session.CodeOf(err) != "agent_find_not-found" {
		t.Errorf("revoking what is not there: %v", err)
	}
	if err := control.RevokeClient(t.Context(), "laptop"); err != nil {
		t.Fatal(err)
	}
	if _, err := far.Machine(t.Context()); err == nil {
		t.Error("a revoked client is still answered")
	}
	if _, err := tunnel.Dial(t.Context(), dialer, tunnel.Config{}); err == nil {
		t.Error("a revoked client is let in again")
	}
}

func TestPersonsOwnSlipwayIsReachedAsAnAgent(t *testing.T) {
	r := start(t, t.TempDir(), 0)
	c, err := daemon.Connect(t.Context(), r.home)
	if err != nil {
		t.Fatal(err)
	}
	if status, err := c.Status(t.Context()); err != nil || status.Role != daemon.RolePlane {
		t.Errorf("%+v, %v", status, err)
	}
	if err := c.Stop(t.Context()); session.CodeOf(err) != "agent_call_conflict" {
		t.Errorf("stopped from outside: %v", err)
	}
	far := reach(t, dialFunc(func(ctx context.Context) (net.Conn, error) { return daemon.Dial(ctx, r.home) }))
	if machine, err := far.Machine(t.Context()); err != nil || machine.Engine != local.EngineSim {
		t.Errorf("%+v, %v", machine, err)
	}
	if err := service.RunAgent(t.Context(), service.AgentConfig{Home: r.home, Log: discard(),
		Settings: daemon.Settings{Engine: local.EngineSim}}); session.CodeOf(err) != "server_start_conflict" {
		t.Errorf("a second agent: %v", err)
	}
}
