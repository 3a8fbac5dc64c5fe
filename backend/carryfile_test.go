//go:build linux

package backend

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// uploadVariable names the environment variable with the bytes that are
	// uploaded over two cuts, for more than the default: 1073741824 is 1 GiB.
	uploadVariable = "SLIPWAY_TEST_UPLOAD"
	uploadDefault  = 256 << 20 // bytes
	heldMost       = 64 << 20  // bytes by which an upload may make the agent grow
)

// uploadSize is how much is uploaded, in bytes.
func uploadSize(t *testing.T) int64 {
	t.Helper()
	text := os.Getenv(uploadVariable)
	if text == "" {
		return uploadDefault
	}
	size, err := strconv.ParseInt(text, 10, 64)
	if err != nil || size < uploadDefault {
		t.Fatalf("%s is %q and should be at least %d, in bytes", uploadVariable, text, uploadDefault)
	}
	return size
}

// upload copies a file into a session with the program's command, and takes the
// cable out twice on the way.
func (l *laptop) upload(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	size := uploadSize(t)
	local := filepath.Join(l.dir, "upload")
	sum := writeNoise(t, local, size)
	home := l.rootOf(t, name) + "/home/work"
	before := l.agentPeak(t, true)
	began := time.Now()
	done := make(chan error, 1)
	go func() {
		_, err := l.run("cp", local, name+":upload")
		done <- err
	}()
	for _, at := range []int64{size / 4, size / 2} {
		eventually(ctx, t, fmt.Sprintf("%d bytes are there", at), func() bool {
			select {
			case err := <-done:
				t.Fatalf("it ended before the cable was out at %d bytes: %v", at, err)
			default:
			}
			return arrived(home) >= at
		})
		l.cut(true)
		eventually(ctx, t, "the loss is noticed", func() bool { return l.agent().Connection.State != "connected" })
		there := arrived(home)
		if there >= size {
			t.Errorf("all %d bytes were there before the cable was out", there)
		}
		l.cut(false)
		back := time.Now()
		eventually(ctx, t, "the upload goes on", func() bool { return arrived(home) > there })
		t.Logf("cut at %d of %d bytes, going on %s after the cable is back", there, size,
			time.Since(back).Round(time.Millisecond))
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	grown := l.agentPeak(t, false) - before
	t.Logf("%d bytes in %s over two cuts; the agent grew from %d KiB by at most %d KiB", size,
		time.Since(began).Round(time.Millisecond), before>>10, grown>>10)
	if grown >= heldMost {
		t.Errorf("the agent grew by %d bytes", grown)
	}
	if got := l.do("exec", name, "--", "sha256sum", "/home/work/upload"); !strings.HasPrefix(got, sum) {
		t.Errorf("over there it is %q and should be %s", got, sum)
	}
	if left, _ := filepath.Glob(home + "/.slipway-*.part"); len(left) > 0 {
		t.Errorf("parts are left: %v", left)
	}
}

// rootOf is the root of a session's files as this machine sees it, whatever
// becomes of the network.
func (l *laptop) rootOf(t *testing.T, name string) string {
	t.Helper()
	pid, err := exec.Command("docker", "-H", l.dockerHost, "inspect", "-f", "{{.State.Pid}}",
		l.session(name).Kernels[0].Container).Output()
	if err != nil {
		t.Fatal(err)
	}
	return "/proc/" + strings.TrimSpace(string(pid)) + "/root"
}

// arrived is how many bytes of an upload are in a folder, in a part that still
// gathers or in the file.
func arrived(folder string) (most int64) {
	parts, _ := filepath.Glob(folder + "/.slipway-*.part")
	for _, path := range append(parts, folder+"/upload") {
		if info, err := os.Stat(path); err == nil {
			most = max(most, info.Size())
		}
	}
	return most
}

// agentPeak is the most memory that the server's agent has held, in bytes, since
// it was last asked to begin anew: then it is what the agent holds now.
func (w *farWorld) agentPeak(t *testing.T, anew bool) (most int64) {
	t.Helper()
	for _, one := range w.processes() {
		var pid int
		if _, err := fmt.Sscanf(one, "/proc/%d/", &pid); err != nil {
			continue
		}
		if anew {
			if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
				t.Logf("the peak so far counts: %v", err) // a bridge may have ended
			}
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			continue // a bridge that has ended
		}
		for line := range strings.Lines(string(status)) {
			var kib int64
			if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kib); err == nil {
				most = max(most, kib<<10)
			}
		}
	}
	if most == 0 {
		t.Fatal("no agent runs there")
	}
	return most
}
