package enginetest

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// OpenRegistry starts the registry that Debian packages, on the loopback, and returns its address. It lets in whoever
// has the login, or anybody where there is none.
func OpenRegistry(t *testing.T, user, password string) (addr string) {
	t.Helper()
	program, err := exec.LookPath("docker-registry")
	if err != nil {
		t.Fatal("docker-registry is not installed: build/ci/setup.sh test")
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr, dir := free.Addr().String(), t.TempDir()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %q}, delete: "+
		"{enabled: true}}\nhttp: {addr: %q}\n", filepath.Join(dir, "data"), addr)
	if user != "" {
		hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
		if err != nil {
			t.Fatal(err)
		}
		logins := filepath.Join(dir, "htpasswd")
		err = os.WriteFile(logins, []byte(user+":"+string(hash)+"\n"), 0o600)
		if err != nil {
			t.Fatal(err)
		}
		config += fmt.Sprintf("auth: {htpasswd: {realm: test, path: %q}}\n", logins)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "serve", filepath.Join(dir, "config.yml"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it keeps nothing that is needed
		_ = cmd.Wait()
	})
	deadline := time.Now().Add(time.Minute)
	for {
		answer, err := http.Get("http://" + addr + "/v2/")
		if err == nil {
			_ = answer.Body.Close()
			return addr
		}
		if time.Now().After(deadline) {
			t.Fatalf("the registry does not answer: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
