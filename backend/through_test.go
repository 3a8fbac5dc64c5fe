//go:build linux

package backend

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/backend/api"
	"slipway/backend/engine/enginetest"
	"slipway/backend/hub"
	"slipway/backend/lend"
	"slipway/backend/session"
)

// ownDocker starts a Docker in the namespace of the server, which has no way out of it.
func (w *farWorld) ownDocker(env ...string) (host string) {
	w.t.Helper()
	state, err := filepath.Abs(filepath.Join(w.dir, "docker"))
	if err != nil {
		w.t.Fatal(err)
	}
	inside := func(command string) []byte {
		w.t.Helper()
		args := append([]string{"--net=/run/netns/" + w.far, "env", "SLIPWAY_DOCKERD=" + state}, env...)
		cmd := exec.Command("nsenter", append(args, "../build/ci/dockerd.sh", command)...)
		var diag bytes.Buffer
		cmd.Stderr = &diag
		out, err := cmd.Output()
		if err != nil {
			w.t.Fatalf("dockerd.sh %s: %v: %s", command, err, diag.String())
		}
		return out
	}
	w.t.Cleanup(func() { inside("stop") })
	_, host, _ = strings.Cut(strings.TrimSpace(string(inside("start"))), "=")
	return host
}

// office is the network of the laptop: a proxy on its loopback, which alone knows a name, and what is served there.
// The answer begins, and goes on when the test says so.
type office struct {
	proxy string        // address
	begun chan struct{} // holds a token when an answer has begun
	more  chan struct{}
}

func newOffice(t *testing.T, near string) *office {
	t.Helper()
	o := &office{begun: make(chan struct{}, 1), more: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "first half, ")
		w.(http.Flusher).Flush()
		o.begun <- struct{}{}
		select {
		case <-o.more:
			fmt.Fprint(w, "second half")
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	var listener net.Listener
	var err error
	nsErr := within(near, func() { listener, err = net.Listen("tcp", "127.0.0.1:0") })
	if err = errors.Join(err, nsErr); err != nil {
		t.Fatal(err)
	}
	config := lend.Config{Token: rand.Text(),
		Via: func(*http.Request) (*url.URL, error) { return nil, nil },
		Dial: func(ctx context.Context, network, name string) (net.Conn, error) {
			if name != "packages.invalid:80" {
				return nil, errors.New("the office knows no " + name)
			}
			return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
		}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = lend.Serve(ctx, config, func(context.Context) (net.Conn, error) { return listener.Accept() })
	}()
	t.Cleanup(func() {
		cancel()
		_ = listener.Close()
		<-ended
	})
	o.proxy = "http://ada:" + config.Token + "@" + listener.Addr().String()
	return o
}

// proxyOfStep returns the address of the proxy that a running step was given.
func proxyOfStep() *url.URL {
	matching := regexp.MustCompile(`HTTP_PROXY=(http://slipway:[^\x00]+)\x00`)
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		text, _ := os.ReadFile(file) // the process may have ended
		if found := matching.FindSubmatch(text); found != nil {
			if proxy, err := url.Parse(string(found[1])); err == nil {
				return proxy
			}
		}
	}
	return nil
}

// fetchInStep is what the step of the build runs.
const fetchInStep = `import urllib.request
text = urllib.request.urlopen("http://packages.invalid/").read().decode()
print(text)
open("/fetched", "w").write(text)
`

// TestALabWithoutTheInternetBuildsThroughTheLaptop has a lab whose Docker reaches nothing, and a laptop whose own way
// out is the proxy of its office. The base of the image is sent, and the step fetches through the tunnel, also while
// that is cut.
func TestALabWithoutTheInternetBuildsThroughTheLaptop(t *testing.T) {
	shared := enginetest.RequireDocker(t)
	w := newFarWorldWith(t, func(w *farWorld) string { return w.ownDocker() })
	l := newLaptop(w, w.build("1.0.1"))
	o := newOffice(t, w.near)
	l.engine = []string{"SLIPWAY_ENGINE=docker", "DOCKER_HOST=" + shared, "HTTP_PROXY=" + o.proxy, "NO_PROXY=",
		"SLIPWAY_KEYRING=off"}
	l.do("agent", "add", "lab")
	l.connect()
	project := filepath.Join(w.dir, "project")
	enginetest.WriteFiles(t, project, "fetch.py", fetchInStep, "Dockerfile",
		"FROM "+enginetest.ImageMinimal+"\nCOPY fetch.py /\nRUN --mount=type=secret,id=HF_TOKEN,required=true "+
			"grep -q hf_ /run/secrets/HF_TOKEN && python3 /fetch.py\n")
	hush := "hf_" + rand.Text()
	l.call("PUT", "/api/v1/secrets", `{"kind":"variable","name":"HF_TOKEN","value":"`+hush+`"}`, nil)
	var folder session.Folder
	l.call("POST", "/api/v1/folders", `{"agent":"lab","name":"paper","path":"`+project+`"}`, &folder)
	var begun api.Operation
	l.call("POST", "/api/v1/folders/paper/project/build?agent=lab", `{"where":"through","secrets":["HF_TOKEN"]}`,
		&begun)
	operation := func() (now api.Operation) {
		l.call("GET", "/api/v1/operations/"+begun.ID, "", &now)
		if now.State.Ended() && now.State != hub.OperationDone {
			t.Fatalf("the build ended as %+v: %v\n%s", now.Steps, now.Error, now.Log)
		}
		return now
	}
	eventually(t.Context(), t, "the step has begun to fetch", func() bool { operation(); return len(o.begun) > 0 })
	proxy := proxyOfStep()
	if proxy == nil {
		t.Fatal("the step has no proxy")
	}
	token, _ := proxy.User.Password()
	for _, file := range []string{"cmdline", "environ"} {
		if found := processes(t, hush, file); len(found) > 0 {
			t.Errorf("while a step reads the secret, it is in %q", found)
		}
	}
	t.Run("whoever else is at the lab is refused", func(t *testing.T) {
		for _, user := range []*url.Userinfo{nil, url.UserPassword("slipway", "wrong")} {
			by := &url.URL{Scheme: "http", Host: proxy.Host, User: user}
			transport := &http.Transport{Proxy: http.ProxyURL(by),
				DialContext: func(ctx context.Context, network, address string) (conn net.Conn, err error) {
					nsErr := within(w.far, func() { conn, err = new(net.Dialer).DialContext(ctx, network, address) })
					return conn, errors.Join(err, nsErr)
				}}
			said, err := (&http.Client{Transport: transport}).Get("http://packages.invalid/")
			if err != nil {
				t.Fatal(err)
			}
			_ = said.Body.Close()
			transport.CloseIdleConnections()
			if said.StatusCode != http.StatusProxyAuthRequired {
				t.Errorf("with %v, the proxy answers %s", user, said.Status)
			}
		}
	})
	connected := func() bool { return l.agent().Connection.State == "connected" }
	w.cut(true)
	eventually(t.Context(), t, "the loss is noticed", func() bool { return !connected() })
	close(o.more)
	time.Sleep(10 * time.Second) // how long the cable is out, not a wait for anything
	w.cut(false)
	eventually(t.Context(), t, "the build is done", func() bool { return operation().State == hub.OperationDone })
	done := operation()
	if !strings.Contains(done.Log, "first half, second half") {
		t.Errorf("the step printed %q", done.Log)
	}
	var steps []string
	for _, step := range done.Steps {
		steps = append(steps, string(step.State)+" "+step.Title)
	}
	t.Logf("its steps were\n%s", strings.Join(steps, "\n"))
	if len(steps) < 4 || !strings.HasSuffix(steps[1], "Send what is missing of "+enginetest.ImageMinimal) {
		t.Errorf("the base was not sent: %q", steps)
	}
	w.forgets(t, token, done, l.at.Dir)
	w.forgets(t, hush, done, l.at.Dir, filepath.Join(l.at.Dir, "secrets.json"))
	nsErr := within(w.far, func() {
		if conn, err := net.Dial("tcp", proxy.Host); err == nil {
			_ = conn.Close()
			t.Error("the proxy still listens")
		}
	})
	if nsErr != nil {
		t.Error(nsErr)
	}
}

// forgets fails where a secret of a build is found after it: in its operation, the image, a process, and the files of
// both machines, their logs among them, but for those of the laptop that keep it.
func (w *farWorld) forgets(t *testing.T, secret string, done api.Operation, laptop string, keep ...string) {
	t.Helper()
	if said, err := json.Marshal(done); err != nil || strings.Contains(string(said), secret) {
		t.Errorf("the secret is in the operation, %v: %s", err, said)
	}
	where := []string{"-rlF", "-e", secret, w.home, laptop, filepath.Join(w.dir, "docker")}
	found, _ := exec.Command("grep", where...).Output() // it also fails where nothing is found
	if files := strings.Fields(string(found)); !slices.Equal(files, keep) {
		t.Errorf("the secret is in the files %q", files)
	}
	for _, file := range []string{"cmdline", "environ"} {
		if found := processes(t, secret, file); len(found) > 0 {
			t.Errorf("the secret is in %q", found)
		}
	}
	ref := done.Image
	for _, args := range [][]string{{"history", "--no-trunc", ref}, {"inspect", ref}, {"save", ref}} {
		out, err := exec.Command("docker", append([]string{"-H", w.dockerHost}, args...)...).Output()
		if err != nil || bytes.Contains(out, []byte(secret)) {
			t.Errorf("the secret is in what docker %v says, %v", args, err)
		}
	}
}
