package python_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"slipway/backend/engine/sim/python"
	"slipway/backend/engine/sim/shell"
	"slipway/backend/pace"
	notebook "slipway/frontend/notebook"
)

func TestABundleWithoutPythonHasNone(t *testing.T) {
	if python.In(nil) != nil || python.In(fstest.MapFS{"index.html": {}}) != nil {
		t.Error("there is a Python")
	}
}

// TestPython runs the interpreter that is built into the program. It is made ready
// once, which is what takes its time.
func TestPython(t *testing.T) {
	p := python.In(notebook.Assets())
	if p == nil {
		t.Fatal("the bundle of simulated sessions has no Python: run make ui")
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "home", "work", "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "secret")
	for path, text := range map[string]string{
		outside: "of the host", filepath.Join(dir, "home/work/data/points.csv"): "x,y\n1,2\n3,4\n",
		filepath.Join(dir,
			"home/work/sum.py"): "import csv, sys\nprint(sum(int(r['y']) for r in " +
			"csv.DictReader(open(sys.argv[1]))))\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(dir, "home/work/way-out")); err != nil {
		t.Fatal(err)
	}
	files, err := shell.OpenFS(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close() //nolint:errcheck // the folder goes, too
	call := func(in string, args ...string) (python.Call, *bytes.Buffer) {
		var out bytes.Buffer
		return python.Call{Args: args, Env: []string{"HOME=/home/work"}, Dir: "/home/work", Files: files,
			In: strings.NewReader(in), Out: &out, Err: &out, Hostname: "main1", CPUs: 3}, &out
	}

	for name, c := range map[string]struct {
		in       string
		args     []string
		terminal bool
		code     int
		says     []string
	}{
		"a file, found from where one is": {args: []string{"sum.py", "data/points.csv"}, says: []string{"6\n"}},
		"what is known of the session": {
			args: []string{"-c",
				"import os; print(os.getcwd(), os.cpu_count(), os.uname().nodename, sorted(os.environ))"},
			says: []string{"/home/work 3 main1 ['HOME', 'PWD']\n"}},
		"standard input": {in: "print(6 * 7)\n", says: []string{"42\n"}},
		"a conversation": {in: "x = 40\nx + 2\nexit(4)\n", terminal: true, code: 4,
			says: []string{"Python 3.12", ">>> ", "42\n"}},
		"a library that is not there": {args: []string{"-c", "import numpy"}, code: 1, says: []string{
			"No module named 'numpy': the Python of a simulated session has the standard library alone"}},
		"files made, moved, listed, read, removed": {args: []string{"-c", "import os, shutil; os.makedirs('a/b'); " +
			"open('a/b/c', 'w').write('hi'); os.rename('a', 'd'); os.symlink('d/b/c', 'l'); print(os.listdir('d'), " +
			"open('l').read(), os.path.getsize('l'), open('/dev/null').read() == ''); shutil.rmtree('d'); " +
			"os.remove('l'); print(sorted(os.listdir()))"},
			says: []string{"['b'] hi 2 True\n", "['data', 'sum.py', 'way-out']\n"}},
		"a place that is not the user's": {args: []string{"-c", "open('/etc/passwd', 'w')"}, code: 1,
			says: []string{"PermissionError"}},
		"a link that leads out": {args: []string{"-c", "print(open('way-out').read())"}, code: 1,
			says: []string{"Error"}},
		"a file that is not there": {args: []string{"nothing.py"}, code: 2, says: []string{"can't open file"}},
	} {
		t.Run(name, func(t *testing.T) {
			c2, out := call(c.in, c.args...)
			c2.Terminal = c.terminal
			if code := p.Run(t.Context(), c2); code != c.code {
				t.Errorf("it ended with %d, want %d", code, c.code)
			}
			for _, says := range c.says {
				if !strings.Contains(out.String(), says) {
					t.Errorf("it does not say %q: %s", says, out)
				}
			}
			if strings.Contains(out.String(), "of the host") {
				t.Errorf("it read what is not the session's: %s", out)
			}
		})
	}

	t.Run("an interrupt, whatever it does", func(t *testing.T) {
		for _, program := range []string{"print('begun', flush=True)\nwhile True: pass",
			"print('begun', flush=True)\nimport time; time.sleep(3600)", "print('begun', flush=True)\ninput()"} {
			ctx, cancel := context.WithCancel(t.Context())
			reader, writer := io.Pipe()
			begun := &atFirst{do: cancel}
			c, _ := call("", "-c", program)
			c.In, c.Out, c.Err = reader, begun, begun
			if code := p.Run(ctx, c); code != 130 {
				t.Errorf("%q ended with %d", program, code)
			}
			writer.Close() //nolint:errcheck // whoever reads is gone
			cancel()
		}
	})

	t.Run("memory that is not there", func(t *testing.T) {
		c, out := call("", "-c", "held = [bytearray(1 << 20) for _ in range(200)]")
		var most int64
		c.Load = func(_ float64, bytes int64) bool {
			fits := bytes < 100<<20
			if fits {
				most = max(most, bytes)
			}
			return fits
		}
		if code := p.Run(t.Context(), c); code != 137 || !strings.Contains(out.String(), "Killed") || most < 50<<20 {
			t.Errorf("it ended with %d after %d bytes: %s", code, most, out)
		}
	})

	t.Run("the session's clock", func(t *testing.T) {
		c, out := call("", "-c",
			"import time; a = time.time(); time.sleep(7200); print(a // 1e7, time.time() - a >= 7200)")
		began := time.Now()
		c.Clock = pace.New(1e6, began, time.Unix(1_700_000_000, 0))
		if code := p.Run(t.Context(), c); code != 0 || !strings.Contains(out.String(), "True") {
			t.Errorf("it ended with %d: %s", code, out)
		}
	})
}

// atFirst does something at the first thing that is written.
type atFirst struct{ do func() }

func (a *atFirst) Write(p []byte) (int, error) {
	a.do()
	return len(p), nil
}
