//go:build linux && !race

package cli

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"slipway/backend/api"
	"slipway/backend/engine/enginetest"
)

// loginServer is an ssh server that lets in whoever has a password, and runs
// what it is told as this account, in an environment of its own.
type loginServer struct {
	password string
	env      []string
	attempt  func() // called when a password has arrived

	mu     sync.Mutex // guards logins
	logins int
}

// listenForLogins runs the server until the test ends and returns its address and
// a line for known_hosts.
func (s *loginServer) listenForLogins(t *testing.T) (port int, known string) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	config := &ssh.ServerConfig{PasswordCallback: func(_ ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
		s.attempt()
		if string(password) != s.password {
			return nil, errors.New("no")
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.logins++
		return nil, nil
	}}
	config.AddHostKey(signer)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	t.Cleanup(func() { cancel(); _ = listener.Close(); serving.Wait() })
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { s.serve(ctx, conn, config) })
		}
	})
	port = listener.Addr().(*net.TCPAddr).Port
	return port, fmt.Sprintf("[127.0.0.1]:%d %s", port, ssh.MarshalAuthorizedKey(signer.PublicKey()))
}

func (s *loginServer) serve(ctx context.Context, conn net.Conn, config *ssh.ServerConfig) {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	server, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	defer server.Close()
	go ssh.DiscardRequests(requests)
	for wanted := range channels {
		channel, requests, err := wanted.Accept()
		if err != nil {
			return
		}
		go func() {
			for request := range requests {
				var command struct{ Text string }
				known := request.Type == "exec" && ssh.Unmarshal(request.Payload, &command) == nil
				_ = request.Reply(known, nil)
				if known {
					go s.run(ctx, channel, command.Text)
				}
			}
		}()
	}
}

// run does what a login shell does.
func (s *loginServer) run(ctx context.Context, channel ssh.Channel, command string) {
	defer channel.Close()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Env = s.env
	cmd.WaitDelay = 10 * time.Second // the command's end is the end, also where it left a process with its output
	cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
	if in, err := cmd.StdinPipe(); err == nil {
		go func() {
			defer in.Close()
			part := make([]byte, 64<<10)
			for {
				n, err := channel.Read(part)
				if _, writeErr := in.Write(part[:n]); err != nil || writeErr != nil {
					return
				}
			}
		}()
	}
	code := uint32(255)
	if err := cmd.Run(); cmd.ProcessState != nil && (err == nil || cmd.ProcessState.ExitCode() >= 0) {
		code = uint32(cmd.ProcessState.ExitCode())
	}
	_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{code}))
}

// watchProcesses looks for a text in the arguments and the environment of every
// process, until the returned function is called, which tells where it was.
func watchProcesses(t *testing.T, text string) (look func(), end func() []string) {
	t.Helper()
	var mu sync.Mutex // guards seen
	var seen []string
	look = func() {
		paths, _ := filepath.Glob("/proc/[0-9]*")
		for _, path := range paths {
			for _, name := range []string{"cmdline", "environ"} {
				data, err := os.ReadFile(filepath.Join(path, name)) // it may have ended
				if err == nil && bytes.Contains(data, []byte(text)) {
					mu.Lock()
					seen = append(seen, fmt.Sprintf("%s of %q", name, data[:min(len(data), 200)]))
					mu.Unlock()
				}
			}
		}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			look()
			select {
			case <-done:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return look, func() []string {
		close(done)
		<-ended
		mu.Lock()
		defer mu.Unlock()
		return seen
	}
}

// filesWith are the files under a folder that hold a text, in their name or
// content.
func filesWith(t *testing.T, dir, text string) (found []string, looked int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // a program that runs has removed it
			}
			return err
		}
		if strings.Contains(path, text) {
			found = append(found, path)
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		looked++
		if bytes.Contains(data, []byte(text)) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found, looked
}

// TestAPasswordIsKeptNowhere adds an agent by a login with a password, launches
// there, and looks for the password in everything that is left.
func TestAPasswordIsKeptNowhere(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds and runs the whole program")
	}
	docker := enginetest.RequireDocker(t)
	secret := "pw-" + strings.ToLower(rand.Text())
	far := filepath.Join(t.TempDir(), "far")
	look, seen := watchProcesses(t, secret)
	server := &loginServer{password: secret, attempt: look, env: append(os.Environ(), "SLIPWAY_HOME="+far,
		"DOCKER_HOST="+docker)}
	port, known := server.listenForLogins(t)
	dir := t.TempDir()
	client := filepath.Join(dir, "ssh_config")
	for path, text := range map[string]string{
		filepath.Join(dir, "known"): known,
		client: fmt.Sprintf("Host lab\n  HostName 127.0.0.1\n  Port %d\nHost *\n  UserKnownHostsFile %s\n  "+
			"GlobalKnownHostsFile none\n"+
			"  IdentitiesOnly yes\n  IdentityAgent none\n  PubkeyAuthentication no\n  UpdateHostKeys no\n", port,
			filepath.Join(dir, "known")),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	near := install(t, "sim")
	beside := exec.Command("go", "build", "-o", filepath.Join(filepath.Dir(near.path), "slipway-linux-"+runtime.GOARCH),
		"slipway")
	beside.Env = append(os.Environ(), "CGO_ENABLED=0") // what is brought to other machines
	if out, err := beside.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	near.env = append(near.env, "SLIPWAY_SSH_CONFIG="+client)
	shown, err := near.typing("assword:", secret, "agent", "add", "lab")
	if found := seen(); len(found) > 0 {
		t.Errorf("processes showed the password: %q", found)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, shown)
	}
	removed := false
	t.Cleanup(func() {
		if !removed {
			// where the test fails half-way
			_, _ = near.typing("assword:", secret, "agent", "rm", "lab", "--uninstall", "-y")
		}
	})
	reach := func() {
		t.Helper()
		for deadline := time.Now().Add(patience); told[api.Agent](near, "agent", "show", "lab").
			Connection.State != "connected"; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the agent is not reached")
			}
		}
	}
	reach()
	near.image = enginetest.ImageMinimal
	id := near.launch("far-away", "--on", "lab", "--cpu", "1", "--mem", "256m").ID
	screens := []string{shown}
	for _, args := range [][]string{{"agent", "show", "lab"}, {"agent", "list"}, {"history", string(id)}, {"show",
		string(id)},
		{"logs", string(id)}, {"ps", "-a"}} {
		for _, form := range []string{"table", "json"} {
			screens = append(screens, near.must(append(args, "-o", form)...))
		}
	}
	for _, screen := range screens {
		if strings.Contains(screen, secret) {
			t.Errorf("the password is shown:\n%s", screen)
		}
	}
	for what, at := range map[string]string{"the laptop": near.home.Dir, "the server": far, "the person": dir} {
		found, looked := filesWith(t, at, secret)
		if len(found) > 0 || looked == 0 {
			t.Errorf("of %d files of %s, %q hold the password", looked, what, found)
		}
	}
	server.mu.Lock()
	logins := server.logins
	server.mu.Unlock()
	if logins == 0 {
		t.Error("nobody logged in with it")
	}
	near.must("stop", "--force", "--wait", string(id))
	if shown, err := near.typing("assword:", secret, "agent", "rm", "lab", "--uninstall", "-y"); err != nil {
		t.Fatalf("%v\n%s", err, shown)
	}
	removed = true
}
