//go:build linux

package docker_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/backend/engine"
	"slipway/backend/engine/docker"
	"slipway/backend/engine/enginetest"
	"slipway/backend/guest/link"
	"slipway/backend/session"
	"slipway/backend/terminal"
)

const (
	// servePort is where the containers of a test serve.
	servePort = "8123"
	// imageReach holds the program testdata/reach and nothing else.
	imageReach = "slipway-test/reach:1"
)

// filteringDaemon starts a daemon of the test's own that rules the packet
// filter of a network namespace of its own, as one does that people have, and
// returns its address. The daemons that tests share leave the filter alone.
func filteringDaemon(t *testing.T, env ...string) (host string) {
	t.Helper()
	enginetest.RequireDocker(t)
	state, space := t.TempDir(), "slipway-apart-"+strings.ToLower(rand.Text()[:6])
	output := func(cmd *exec.Cmd) string {
		t.Helper()
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s%s", cmd.Args, err, out, errs.String())
		}
		return strings.TrimSpace(string(out))
	}
	must := func(name string, args ...string) string {
		t.Helper()
		return output(asRoot(name, args...))
	}
	env = append(env, "SLIPWAY_DOCKERD="+state, "SLIPWAY_DOCKERD_FILTER=on")
	inside := func(args ...string) string {
		t.Helper()
		return must("nsenter", slices.Concat([]string{"--net=/run/netns/" + space, "env"}, env, args)...)
	}
	must("ip", "netns", "add", space)
	t.Cleanup(func() { must("ip", "netns", "del", space) })
	inside("ip", "link", "set", "lo", "up")
	t.Cleanup(func() { inside("../../../build/ci/dockerd.sh", "stop") })
	_, host, _ = strings.Cut(inside("../../../build/ci/dockerd.sh", "start"), "=")
	program := filepath.Join(t.TempDir(), "reach")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", program,
		"./testdata/reach")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	output(build)
	output(exec.Command("sh", "-c",
		"tar -c -C "+filepath.Dir(program)+" reach | docker -H "+host+" import - "+imageReach))
	return host
}

// serving starts a container in a network, with a server on all of its
// addresses, and returns those.
func serving(t *testing.T, e *docker.Engine, network engine.Network,
	kernel string) (guest *link.Client, addresses []string) {
	t.Helper()
	c := newContainer(network.Labels[engine.LabelInstance], "")
	c.Image, c.Network, c.Name = imageReach, network.Name, c.Name+"-"+kernel
	guest = greet(t, e, runs(t, e, c))
	stream, err := guest.Exec(t.Context(), session.ExecRequest{Command: []string{"/reach", "serve", servePort}})
	if err != nil {
		t.Fatal(err)
	}
	said, says := net.Pipe()
	t.Cleanup(func() {
		stream.Close() //nolint:errcheck // nothing to lose
		said.Close()   //nolint:errcheck // nothing to lose
	})
	go func() {
		terminal.RunExec(context.Background(), terminal.NewConn(stream),
			terminal.ExecIO{Stdout: says, Stderr: t.Output()}) //nolint:errcheck // ends with the stream
		says.Close() //nolint:errcheck // nothing to lose
	}()
	for lines := bufio.NewScanner(said); lines.Scan() && lines.Text() != ""; {
		addresses = append(addresses, lines.Text())
	}
	if len(addresses) == 0 {
		t.Fatal("it has no address")
	}
	return guest, addresses
}

// reaches says whether a container reaches the server of another by any of its
// addresses, within the time that it is given.
func reaches(t *testing.T, from *link.Client, addresses []string, patience string) bool {
	t.Helper()
	return slices.ContainsFunc(addresses, func(address string) bool {
		stream, err := from.Exec(t.Context(),
			session.ExecRequest{Command: []string{"/reach", "dial", net.JoinHostPort(address, servePort), patience}})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if _, err := terminal.RunExec(t.Context(), terminal.NewConn(stream),
			terminal.ExecIO{Stdout: &out, Stderr: &out}); err != nil {
			t.Fatal(err)
		}
		switch got := strings.TrimSpace(out.String()); got {
		case "reached":
			return true
		case "kept out":
			return false
		default:
			t.Fatalf("%s: %q", address, got)
			return false
		}
	})
}

// privately makes a network that its test removes, after the containers in it.
func privately(t *testing.T, e *docker.Engine, instance string, apart bool) engine.Network {
	t.Helper()
	owner := strings.ToLower(rand.Text()[:10])
	n := engine.Network{Name: "slipway-of-" + owner, Apart: apart, Labels: map[string]string{engine.LabelOwner: owner,
		engine.LabelInstance: instance}}
	if err := e.CreateNetwork(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.RemoveNetwork(context.Background(), n.Name); err != nil {
			t.Errorf("remove network: %v", err)
		}
	})
	return n
}

func TestSessionsDoNotReachEachOther(t *testing.T) {
	modern, err := filepath.Abs("../../../build/.cache/modern")
	if err != nil {
		t.Fatal(err)
	}
	for _, daemon := range []struct {
		name string
		env  []string
		have func(testing.TB) string
	}{
		{"on an old Docker", nil, enginetest.RequireDocker},
		{"on a Docker of today", []string{"SLIPWAY_DOCKERD_BIN=" + modern + "/bin", "SLIPWAY_DOCKERD_CONFIG=" + modern +
			"/daemon.json"}, enginetest.RequireModernDocker},
	} {
		t.Run(daemon.name, func(t *testing.T) {
			daemon.have(t)
			instance := instanceOf(t)
			e := open(t, docker.Config{Host: filteringDaemon(t, daemon.env...), Instance: instance, Guest: real})
			anns, bobs, pairs := privately(t, e, instance, true), privately(t, e, instance, true),
				privately(t, e, instance, false)
			first, firstAt := serving(t, e, anns, "1")
			second, secondAt := serving(t, e, anns, "2")
			bob, bobAt := serving(t, e, bobs, "1")
			main1, mainAt := serving(t, e, pairs, "1")
			sub1, subAt := serving(t, e, pairs, "2")
			for _, c := range []struct {
				name string
				from *link.Client
				to   []string
				want bool
			}{
				{"a session reaches itself by its address", first, firstAt, true},
				{"and not another of the same person", second, firstAt, false},
				{"nor the other way round", first, secondAt, false},
				{"nor one of somebody else", first, bobAt, false},
				{"nor that one it", bob, firstAt, false},
				{"the kernels of a cluster reach each other", main1, subAt, true},
				{"both ways", sub1, mainAt, true},
				{"and nobody else's", main1, bobAt, false},
				{"nor does anybody reach them", bob, mainAt, false},
			} {
				t.Run(c.name, func(t *testing.T) {
					patience := "30s"
					if !c.want {
						patience = "1s"
					}
					if got := reaches(t, c.from, c.to, patience); got != c.want {
						t.Errorf("it reaches %v: %t, want %t", c.to, got, c.want)
					}
				})
			}
			if info, err := e.Info(t.Context()); err != nil ||
				slices.ContainsFunc(info.Warnings, func(w session.Warning) bool {
					return w.Code == "engine_info_not-apart" || w.Code == "engine_info_no-filter"
				}) {
				t.Errorf("the engine says %+v, %v", info.Warnings, err)
			}
		})
	}
}

func TestDaemonWithoutAPacketFilterIsSaidToKeepNobodyApart(t *testing.T) {
	info, err := open(t, docker.Config{Host: enginetest.RequireDocker(t), Instance: instanceOf(t)}).Info(t.Context())
	if err != nil || !slices.ContainsFunc(info.Warnings,
		func(w session.Warning) bool { return w.Code == "engine_info_no-filter" }) {
		t.Errorf("it says %+v, %v", info.Warnings, err)
	}
}
