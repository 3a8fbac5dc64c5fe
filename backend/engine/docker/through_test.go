//go:build linux

package docker_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/client"
	"go.etcd.io/bbolt"

	"slipway/backend/engine/docker"
	"slipway/backend/engine/enginetest"
	"slipway/backend/lend"
	"slipway/backend/session"
)

// fetching is what a step runs: it fetches what only the proxy can reach, in plain and encrypted, is refused with
// another password, and prints the address with the right one.
const fetching = `import os, re, ssl, urllib.error, urllib.request as u
print("plain", u.urlopen("http://packages.invalid/").read().decode())
print("encrypted", u.urlopen("https://tls.invalid/", context=ssl._create_unverified_context()).read().decode())
wrong = re.sub("//.*@", "//slipway:wrong@", os.environ["http_proxy"])
try:
    u.build_opener(u.ProxyHandler({"http": wrong})).open("http://packages.invalid/")
except urllib.error.HTTPError as e:
    print("refused", e.code)
print(os.environ["HTTPS_PROXY"])
`

// internet serves a text in plain and encrypted, and dials those servers by names that nothing else resolves.
func internet(t *testing.T) lend.Dial {
	t.Helper()
	serve := http.NewServeMux()
	wheel, name := enginetest.Wheel(t, "tiny"), "tiny-1.0-py3-none-any.whl"
	serve.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "from afar") })
	serve.HandleFunc("/simple/tiny/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<a href=/%s>%s</a>", name, name)
	})
	serve.HandleFunc("/"+name, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, wheel) })
	plain, encrypted := httptest.NewServer(serve), httptest.NewTLSServer(serve)
	t.Cleanup(plain.Close)
	t.Cleanup(encrypted.Close)
	servers := map[string]string{"packages.invalid:80": plain.Listener.Addr().String(),
		"tls.invalid:443": encrypted.Listener.Addr().String()}
	return func(ctx context.Context, network, name string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, servers[name])
	}
}

// lent returns the address of a proxy with a password of its own, which ends with the test.
func lent(t *testing.T, dial lend.Dial) (proxy *url.URL, token string) {
	t.Helper()
	token = rand.Text()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = lend.Serve(ctx, lend.Config{Token: token, Dial: dial,
			Via: func(*http.Request) (*url.URL, error) { return nil, nil }},
			func(context.Context) (net.Conn, error) { return listener.Accept() })
	}()
	t.Cleanup(func() {
		cancel()
		listener.Close()
		<-ended
	})
	return &url.URL{Scheme: "http", Host: listener.Addr().String(), User: url.UserPassword("slipway", token)}, token
}

func TestABuildReachesTheInternetByAProxyThatIsNowhereAfterwards(t *testing.T) {
	onEach(t, func(t *testing.T, e *docker.Engine, c *client.Client) {
		dial, began := internet(t), time.Now()
		b := buildOf(fetching+"# "+rand.Text(), "COPY file /file", "RUN python3 /file && sleep 1")
		proxy, token := lent(t, dial)
		b.Proxy = proxy
		var last session.Build
		made, err := e.Build(t.Context(), b, func(now session.Build) {
			if last = now; strings.Contains(now.Log, "refused") && commandWith(t, token) {
				t.Error("the password is in the list of processes")
			}
		})
		if err != nil {
			t.Fatalf("%v\n%s", err, last.Log)
		}
		t.Cleanup(func() {
			if err := e.RemoveImage(context.Background(), b.Ref); err != nil {
				t.Error(err)
			}
		})
		for _, line := range []string{"plain from afar\n", "encrypted from afar\n", "refused 407\n",
			"http://slipway:" + session.Hidden + "@127.0.0.1:"} {
			if !strings.Contains(last.Log, line) {
				t.Errorf("the step did not print %q: %s", line, last.Log)
			}
		}
		isNowhere(t, e, c, token, fmt.Sprintf("%+v %+v", last, made), b.Ref, made.ID, began, true)
		b.Proxy, _ = lent(t, dial)
		again, err := e.Build(t.Context(), b, func(now session.Build) { last = now })
		if err != nil || len(ran(last)) != 0 || again.ID != made.ID {
			t.Errorf("by another proxy it ran %q and made %s of %s, %v", ran(last), again.ID, made.ID, err)
		}
	})
}

func TestACancelledBuildLeavesNoRecordOfItsProxy(t *testing.T) {
	onEach(t, func(t *testing.T, e *docker.Engine, c *client.Client) {
		began := time.Now()
		b := buildOf("# "+rand.Text(), "RUN echo proxy $HTTP_PROXY && sleep 600")
		proxy, token := lent(t, internet(t))
		b.Proxy = proxy
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, err := e.Build(ctx, b, func(now session.Build) {
			if strings.Contains(now.Log, "proxy http://slipway:"+session.Hidden) {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("it ended as %v", err)
		}
		// The step ends within a moment, and its folder goes with it.
		info, err := c.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		steps := filepath.Join(info.DockerRootDir, "buildkit", "executor", "*", "config.json")
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			if left, err := filepath.Glob(steps); err != nil || len(left) == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("the step goes on")
			}
		}
		isOnNoDisk(t, c, token, began, true)
	})
}

// records returns what the database of BuildKit's history has, without what it has deleted: it overwrites that when it
// needs the room.
func records(t *testing.T, file string) (all []byte) {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "history.db")
	data, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(copied, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(copied, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(_ []byte, bucket *bbolt.Bucket) error {
			return bucket.ForEach(func(key, value []byte) error {
				all = append(append(all, key...), value...)
				return nil
			})
		})
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("the history of builds has %d bytes: %v", len(all), err)
	}
	return all
}

// isNowhere fails where a secret is found after a build: in what was said of it, in the image, in what the daemon has.
// arguments says that it was one of the arguments.
func isNowhere(t *testing.T, e *docker.Engine, c *client.Client, hush, said, ref, id string, began time.Time,
	arguments bool) {
	t.Helper()
	history, err := c.ImageHistory(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	inspected, err := c.ImageInspect(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if said += fmt.Sprintf("%+v %+v", history, inspected); strings.Contains(said, hush) {
		t.Errorf("the secret is in %s", said)
	}
	err = e.ExportImage(t.Context(), id, func(string) bool { return true },
		func(part string, content io.Reader) error {
			data, err := io.ReadAll(content)
			if bytes.Contains(data, []byte(hush)) {
				t.Errorf("the secret is in the part %s of the image", part)
			}
			return err
		})
	if err != nil {
		t.Fatal(err)
	}
	isOnNoDisk(t, c, hush, began, arguments)
}

// isOnNoDisk fails where the daemon keeps a secret in a file.
func isOnNoDisk(t *testing.T, c *client.Client, hush string, began time.Time, arguments bool) {
	t.Helper()
	info, err := c.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range filesWith(t, filepath.Dir(info.DockerRootDir), hush, began) {
		if arguments && filepath.Base(file) == "history.db" && !bytes.Contains(records(t, file), []byte(hush)) {
			t.Logf("BuildKit has deleted it in %s, and not overwritten yet", file)
			continue
		}
		t.Errorf("the secret is in %s", file)
	}
}

func TestPipInstallsByAProxy(t *testing.T) {
	onEach(t, func(t *testing.T, e *docker.Engine, _ *client.Client) {
		b := buildOf("")
		b.Context = func(_ context.Context, to io.Writer) error {
			return enginetest.Archive(to, b.Dockerfile, "FROM "+enginetest.ImagePip+"\nRUN pip install "+
				"--break-system-packages --index-url https://tls.invalid/simple --trusted-host tls.invalid tiny && "+
				"echo "+rand.Text()+" && python3 -c 'import tiny; tiny.hello()'\n")
		}
		b.Proxy, _ = lent(t, internet(t))
		last, _, err := built(t, e, b)
		if err != nil || !strings.Contains(last.Log, "hello from tiny") {
			t.Errorf("it ended as %v\n%s", err, last.Log)
		}
	})
}

func TestADaemonElsewhereHasNoProxyHere(t *testing.T) {
	host := enginetest.RequireDocker(t)
	forward, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer forward.Close()
	go func() {
		for conn, err := forward.Accept(); err == nil; conn, err = forward.Accept() {
			go func() {
				defer conn.Close()
				socket, err := net.Dial("unix", strings.TrimPrefix(host, "unix://"))
				if err != nil {
					return
				}
				defer socket.Close()
				go io.Copy(socket, conn) //nolint:errcheck // ends with the test
				io.Copy(conn, socket)    //nolint:errcheck // likewise
			}()
		}
	}()
	e := open(t, docker.Config{Host: "tcp://" + forward.Addr().String(), Instance: instanceOf(t)})
	b := buildOf("")
	b.Proxy = &url.URL{Scheme: "http", Host: "127.0.0.1:1", User: url.UserPassword("slipway", "hush")}
	if _, _, err := built(t, e, b); session.CodeOf(err) != session.CodeEngineUnsupported {
		t.Errorf("it ends with %v", err)
	}
}
