//go:build linux

package docker_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"

	"slipway/backend/engine"
	"slipway/backend/engine/docker"
	"slipway/backend/engine/enginetest"
	"slipway/backend/guest/link"
)

// newKey makes a private key as an agent delivers it.
func newKey(t *testing.T) string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// kernels starts main1 and sub1 of one session in its private network.
func kernels(t *testing.T, e *docker.Engine) (main1, sub1 *link.Client) {
	t.Helper()
	first := newContainer(instanceOf(t), "")
	private := "slipway-" + first.Labels[engine.LabelSession]
	labels := map[string]string{engine.LabelSession: first.Labels[engine.LabelSession],
		engine.LabelInstance: instanceOf(t)}
	if err := e.CreateNetwork(t.Context(), engine.Network{Name: private, Labels: labels}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.RemoveNetwork(context.Background(), private); err != nil {
			t.Errorf("remove network: %v", err)
		}
	})
	cluster := engine.Cluster{Hosts: []string{"main1", "sub1"}, HostKey: newKey(t), UserKey: newKey(t)}
	guests := map[string]*link.Client{}
	for _, name := range cluster.Hosts {
		c := first
		c.Name = private + "-" + name + "-1"
		c.Hostname, c.Network, c.Guest.Kernel = name, private, name
		own := cluster
		own.Self = name
		c.Guest.Cluster = &own
		guests[name] = greet(t, e, runs(t, e, c))
	}
	return guests["main1"], guests["sub1"]
}

func TestKernelsOfASessionReachEachOther(t *testing.T) {
	enginetest.RequireDocker(t)
	hosts := map[string]func(*testing.T) *docker.Engine{
		"on an old Docker": func(t *testing.T) *docker.Engine {
			return open(t, docker.Config{Instance: instanceOf(t), Guest: real})
		},
		"on a Docker of today": func(t *testing.T) *docker.Engine {
			e, _ := modern(t, docker.Config{Guest: real})
			return e
		},
	}
	for name, open := range hosts {
		t.Run(name, func(t *testing.T) {
			main1, sub1 := kernels(t, open(t))
			for _, guest := range []*link.Client{main1, sub1} { // until both are set up
				if got := execute(t, guest,
					"test -e /usr/local/bin/ssh || which ssh >/dev/null && echo has ssh"); got != "has ssh\n" {
					t.Fatalf("got %q", got)
				}
			}
			for _, c := range []struct {
				name   string
				from   *link.Client
				script string
				want   string
			}{
				{"by host name from the first", main1, "ssh sub1 hostname", "sub1\n"},
				{"and from the other", sub1, "ssh main1 hostname", "main1\n"},
				{"and to themselves", main1, "ssh main1 hostname", "main1\n"},
				{"with the exit code", main1, "ssh sub1 'exit 3'; echo $?", "3\n"},
				{"with input, output and errors", main1, "echo in | ssh sub1 'cat; echo err >&2' 2>/dev/null", "in\n"},
				{"as the work user", sub1, "ssh main1 'id -un; pwd'", "work\n/home/work\n"},
				{"through one another", main1, "ssh sub1 ssh main1 hostname", "main1\n"},
				{"not where nobody answers", main1, "ssh -p 1 main1 true 2>/dev/null; echo $?", "255\n"},
				{"in one home", main1, "echo shared > note; ssh sub1 cat note", "shared\n"},
			} {
				t.Run(c.name, func(t *testing.T) {
					if got := execute(t, c.from, c.script); got != c.want {
						t.Errorf("got %q, want %q", got, c.want)
					}
				})
			}
		})
	}
}

// real is the real guest, as an engine delivers it.
func real(string) ([]byte, error) { return os.ReadFile(realGuest) }

func TestOldNetworksAreSwept(t *testing.T) {
	dir, instance := t.TempDir(), instanceOf(t)
	first := open(t, docker.Config{Dir: dir, Instance: instance})
	c := newContainer(instance, "")
	for _, use := range []string{"used", "left"} {
		labels := map[string]string{engine.LabelInstance: instance, engine.LabelSession: use}
		name := "slipway-test-" + use + "-" + strings.ToLower(rand.Text()[:8])
		if err := first.CreateNetwork(t.Context(), engine.Network{Name: name, Labels: labels}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { api(t).NetworkRemove(context.Background(), name) }) //nolint:errcheck // it may be gone
		if use == "used" {
			c.Network, c.Labels[engine.LabelSession] = name, use
			c.Name = "slipway-" + use + "-main1-" + strings.ToLower(rand.Text()[:8])
		}
	}
	created(t, first, c)
	second := open(t, docker.Config{Dir: dir, Instance: instance})
	if _, err := second.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	names := networksOf(t, instance)
	if len(names) != 1 || names[0] != c.Network {
		t.Errorf("after the first list there are %q, want only %s", names, c.Network)
	}
	t.Run("but somebody else's are never removed", func(t *testing.T) {
		if err := open(t, docker.Config{Instance: instance + "-other"}).RemoveNetwork(t.Context(),
			c.Network); err != nil {
			t.Errorf("got %v", err)
		}
		if names := networksOf(t, instance); len(names) != 1 {
			t.Errorf("there are %q", names)
		}
	})
}

func networksOf(t *testing.T, instance string) []string {
	t.Helper()
	found, err := api(t).NetworkList(t.Context(),
		network.ListOptions{Filters: filters.NewArgs(filters.Arg("label", engine.LabelInstance+"="+instance))})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range found {
		names = append(names, n.Name)
	}
	return names
}
