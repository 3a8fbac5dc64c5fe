//go:build unix

package sshstdio

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func TestCommandsRunAsGiven(t *testing.T) {
	p := newPlace(t)
	s := startServer(t, p)
	p.trust(t, s)
	r := p.remote(t, s.address(), nil)
	t.Run("arguments arrive as they are", func(t *testing.T) {
		args := []string{"", " ", "a b", "it's", `"`, `\`, "$HOME", "`id`", "$(id)", ";id", "*", "~", "\n", "-n", "!x",
			"é", "a\tb", "%s"}
		result, err := r.Run(soon(t), append([]string{"printf", "%s|"}, args...), nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.Join(args, "|") + "|"; string(result.Stdout) != want {
			t.Errorf("they arrive as %q, not %q", result.Stdout, want)
		}
	})
	t.Run("input, both outputs and the exit code", func(t *testing.T) {
		result, err := r.Run(soon(t), []string{"sh", "-c", "cat; echo no >&2; exit 255"}, strings.NewReader("in"))
		if err != nil || string(result.Stdout) != "in" || !strings.Contains(string(result.Stderr), "no") ||
			result.Exit != 255 {
			t.Errorf("%q, %q, %d, %v", result.Stdout, result.Stderr, result.Exit, err)
		}
	})
	t.Run("a missing command is code 127", func(t *testing.T) {
		if result, err := r.Run(soon(t), []string{"~/no such"}, nil); err != nil || result.Exit != 127 {
			t.Errorf("code %d, %v", result.Exit, err)
		}
	})
	t.Run("a command that wants no input", func(t *testing.T) {
		result, err := r.Run(soon(t), []string{"true"}, bytes.NewReader(make([]byte, 1<<20)))
		if err != nil || result.Exit != 0 {
			t.Errorf("code %d, %v", result.Exit, err)
		}
	})
	t.Run("endless output ends", func(t *testing.T) {
		_, err := r.Run(soon(t), []string{"cat", "/dev/zero"}, nil)
		wantCode(t, err, "agent_install_failed")
	})
	t.Run("its context ends it", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(soon(t), 200*time.Millisecond)
		defer cancel()
		// What says nothing would stay there: it would not learn that nobody listens.
		_, err := r.Run(ctx, []string{"sh", "-c", "while echo; do sleep 0.1; done"}, nil)
		wantCode(t, err, "agent_connect_unavailable")
	})
	t.Run("input that fails is an error", func(t *testing.T) {
		broken := errors.New("disk")
		if _, err := r.Run(soon(t), []string{"cat"},
			io.MultiReader(strings.NewReader("x"), iotest.ErrReader(broken))); !errors.Is(err, broken) {
			t.Errorf("it ended with %v", err)
		}
	})
	s.logins(t, 1)
}

func TestACommandWhoseConnectionBreaksIsNoResult(t *testing.T) {
	p := newPlace(t)
	s := startServer(t, p)
	p.trust(t, s)
	r := p.remote(t, s.address(), nil)
	// The command kills the server's side of its own connection.
	_, err := r.Run(soon(t), []string{"sh", "-c", "echo half; kill -9 $(ps -o ppid= -p $PPID)"}, nil)
	if codeOf(err) == "" {
		t.Errorf("it ended with %v", err)
	}
	if result, err := r.Run(soon(t), []string{"echo", "again"}, nil); err != nil || string(result.Stdout) != "again\n" {
		t.Errorf("afterwards %q, %v", result.Stdout, err)
	}
}

func TestUploads(t *testing.T) {
	p := newPlace(t)
	s := startServer(t, p)
	p.trust(t, s)
	r := p.remote(t, s.address(), nil)
	content := bytes.Repeat([]byte("slipway\x00\n"), 300_000)
	sum := sha256.Sum256(content)
	dir := t.TempDir()
	path := filepath.Join(dir, "it's a folder", "slipway")
	onlyFile := func(t *testing.T) {
		t.Helper()
		entries, err := os.ReadDir(filepath.Dir(path))
		if err != nil || len(entries) != 1 || entries[0].Name() != "slipway" {
			t.Errorf("the folder holds %v, %v", entries, err)
		}
	}
	upload := func(t *testing.T) {
		t.Helper()
		if err := r.Upload(soon(t), bytes.NewReader(content), path, 0o755, sum); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, content) {
			t.Fatalf("%d bytes arrived otherwise, %v", len(got), err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("its mode is %v, %v", info.Mode(), err)
		}
		onlyFile(t)
	}
	t.Run("make folders", upload)
	t.Run("replace what is there", upload)
	t.Run("damaged on the way leave what is there", func(t *testing.T) {
		bad := bytes.Clone(content)
		bad[1000] ^= 1
		wantCode(t, r.Upload(soon(t), bytes.NewReader(bad), path, 0o755, sum), "agent_install_failed")
		wantCode(t, r.Upload(soon(t), bytes.NewReader(content[:1000]), path, 0o755, sum), "agent_install_failed")
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("what was there is gone, %v", err)
		}
		onlyFile(t)
	})
	t.Run("are checked where there is no program for hashes", func(t *testing.T) {
		bare := startServer(t, p, "SetEnv SHLVL=2 PATH="+bareTools(t))
		p.trust(t, bare)
		r := p.remote(t, bare.address(), nil)
		if err := r.Upload(soon(t), bytes.NewReader(content), path, 0o700, sum); err != nil {
			t.Fatal(err)
		}
		onlyFile(t)
		wantCode(t, r.Upload(soon(t), bytes.NewReader(content[1:]), path, 0o700, sum), "agent_install_failed")
		onlyFile(t)
	})
	p.trust(t, s)
	t.Run("into what cannot be a folder", func(t *testing.T) {
		wantCode(t, r.Upload(soon(t), bytes.NewReader(content), path+"/below", 0o755, sum), "agent_install_failed")
	})
	t.Run("onto a full disk", func(t *testing.T) {
		err := r.Upload(soon(t), bytes.NewReader(content), "/dev/full/x", 0o755, sum)
		wantCode(t, err, "agent_install_failed")
	})
	t.Run("relative paths are refused", func(t *testing.T) {
		if err := r.Upload(soon(t), bytes.NewReader(content), "x", 0o755, sum); err == nil {
			t.Error("it was accepted")
		}
	})
}

// bareTools is a folder with no more programs than a small system has.
func bareTools(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"sh", "cat", "mkdir", "dirname", "rm", "mv", "chmod"} {
		real := filepath.Join("/bin", name)
		if _, err := os.Stat(real); err != nil {
			real = filepath.Join("/usr/bin", name)
		}
		if err := os.Symlink(real, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestOutputIsWhatIsBetweenTheMarks(t *testing.T) {
	const mark = "slipway-MARK"
	for name, c := range map[string]struct {
		in, out string
		exit    int
		ok      bool
	}{
		"nothing":         {"\n" + mark + "\n\n" + mark + " 000\n", "", 0, true},
		"noise":           {"hello\n" + mark + "x\n\n" + mark + "\nout\n" + mark + " 000", "", 0, false},
		"output":          {"noise\n" + mark + "\nout\n\n" + mark + " 042\n", "out\n", 42, true},
		"no line end":     {"\n" + mark + "\nout\n" + mark + " 255\n", "out", 255, true},
		"cut off":         {"\n" + mark + "\nout\n" + mark + " 2", "", 0, false},
		"a code too high": {"\n" + mark + "\nout\n" + mark + " 256\n", "out", 0, false},
		"a mark inside": {"\n" + mark + "\nout" + mark + " 001\nout\n" + mark + " 000\n", "out" + mark + " 001\nout",
			0, true},
		"noise after it": {"\n" + mark + "\nout\n" + mark + " 003\nbye\n", "out", 3, true},
		"no mark":        {"out", "", 0, false},
	} {
		for _, size := range []int{1, 3, 1000} {
			var out bytes.Buffer
			b := &between{to: &out, mark: mark}
			if _, err := io.CopyBuffer(struct {
				io.Writer
			}{b}, struct{ io.Reader }{strings.NewReader(c.in)}, make([]byte, size)); err != nil {
				t.Fatal(err)
			}
			exit, ok := b.end()
			if ok != c.ok || (ok && (exit != c.exit || out.String() != c.out)) {
				t.Errorf("%s by %d: %q, %d, %v", name, size, out.String(), exit, ok)
			}
		}
	}
}

func FuzzBetween(f *testing.F) {
	const mark = "slipway-MARK"
	f.Add([]byte("noise"), []byte("out"), uint8(3))
	f.Fuzz(func(t *testing.T, noise, body []byte, size uint8) {
		if bytes.Contains(noise, []byte(mark)) || bytes.Contains(body, []byte(mark)) {
			return
		}
		in := bytes.Join([][]byte{noise, []byte("\n" + mark + "\n"), body, []byte("\n" + mark + " 007\n")}, nil)
		var out bytes.Buffer
		b := &between{to: &out, mark: mark}
		if _, err := io.CopyBuffer(struct {
			io.Writer
		}{b}, struct{ io.Reader }{bytes.NewReader(in)}, make([]byte, int(size)+1)); err != nil {
			t.Fatal(err)
		}
		if exit, ok := b.end(); !ok || exit != 7 || !bytes.Equal(out.Bytes(), body) {
			t.Errorf("%q became %q, %d, %v", body, out.Bytes(), exit, ok)
		}
	})
}
