package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// newWorld makes a world with a home, in a directory that the test removes.
func newWorld(t *testing.T) *World {
	t.Helper()
	dir := t.TempDir()
	if err := Furnish(dir, "main1", 1000, 1000, 512<<20, []int{0, 1}); err != nil {
		t.Fatal(err)
	}
	files, err := OpenFS(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := files.Close(); err != nil {
			t.Error(err)
		}
	})
	return &World{FS: files, Hostname: "main1", User: "work",
		CPUs: 2, Memory: 512 << 20,
		Started: time.Now()}
}

var testEnv = []string{"HOME=/home/work", "PATH=/usr/local/bin:/usr/bin:/bin", "UID=1000", "GID=1000", "EUID=1000",
	"USER=work"}

func run(t *testing.T, w *World, script string) (output string, code int) {
	t.Helper()
	var out bytes.Buffer
	s, err := New(w, Config{Env: testEnv, Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatal(err)
	}
	code = s.Run(t.Context(), script, "test")
	return out.String(), code
}

func TestUtilitiesDoWhatTheirNamesSay(t *testing.T) {
	cases := []struct{ script, want string }{
		{"pwd; cd /tmp; pwd; cd -", "/home/work\n/tmp\n/home/work\n"},
		{"echo hello > a; cat a; cat < a", "hello\nhello\n"},
		{"printf 'a\\nb\\nc\\n' | head -2; head -n 1 /etc/hostname", "a\nb\nmain1\n"},
		{"printf '10\\n9\\n100\\n' | tail -n 1", "100\n"},
		{"printf 'one two\\nthree\\n' | wc", "2 3 14\n"},
		{"printf 'one\\ntwo\\n' | wc -l", "2\n"},
		{"printf 'foo\\nbar\\nFoo\\n' | grep -in foo", "1:foo\n3:Foo\n"},
		{"echo aab | grep 'a+b'; printf 'a\\nb\\n' | grep -vc a", "aab\n1\n"},
		{"mkdir -p x/y; echo needle > x/y/z; grep need x/y/z /etc/hostname; ls -1 x", "x/y/z:needle\ny\n"},
		{"mkdir d; cp -r d e; mv e f; ls", "d\nf\n"},
		{"touch a b; rm a; ls; rm -rf b missing; ls", "b\n"},
		{"seq 3; seq 2 2 6; seq 3 -1 2", "1\n2\n3\n2\n4\n6\n3\n2\n"},
		{"nproc; hostname; whoami", "2\nmain1\nwork\n"},
		{"cat /etc/hostname", "main1\n"},
		{"X=1 env | grep ^X=", "X=1\n"},
		{"A=5 sh -c 'echo $A $1' zero one; echo 'echo file $1' > s; sh s now; echo 'echo input' | sh",
			"5 one\nfile now\ninput\n"},
		{"for i in 1 2 3; do echo $((i*i)); done", "1\n4\n9\n"},
		{"f() { echo in $1; }; f there", "in there\n"},
		{"type ls; command -v cat; which cd", "/usr/bin/ls\n/usr/bin/cat\ncd: shell builtin\n"},
		{"echo x{1..3}; echo *", "x1 x2 x3\n*\n"},
		{"head -c 4 /dev/zero | wc -c; echo gone > /dev/null; cat /dev/null", "4\n"},
		{"date | grep -c ' UTC 20[0-9][0-9]$'", "1\n"},
		{"echo $TMPDIR; touch /tmp/q && ls /tmp", "/tmp\nq\n"},
		{"read a b <<< 'one two three'; echo $b", "two three\n"},
		{"cat <<END\nhere $((1+1))\nEND", "here 2\n"},
		{"cat /sys/fs/cgroup/memory.max", "536870912\n"},
		{"ls -ld /etc /tmp | grep -c 'root +root .* /etc$'", "1\n"},
		{"tree", "tree: command not found (this session is simulated: \"help\" lists the commands that it has)\n"},
		{"python3 x.py", "python3: command not found " +
			"(terminals of simulated sessions have no Python; open JupyterLab to run some)\n"},
	}
	for _, c := range cases {
		t.Run(c.script, func(t *testing.T) {
			if got, _ := run(t, newWorld(t), c.script); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestExitCodes(t *testing.T) {
	cases := []struct {
		script string
		code   int
	}{
		{"true", 0}, {"false", 1}, {"exit 7", 7}, {"nosuchprogram", 127}, {"cat missing", 1}, {"ls missing", 2},
		{"grep x /dev/null", 1},
		{"./missing", 127}, {"touch f; ./f", 127}, {"sh -c 'exit 9'", 9}, {"if", 2}, {"stress --colour", 2},
		{"stress --vm-bytes 1G --timeout 1", 137},
		{"(exit 3)", 3}, {"false | true", 0}, {"set -o pipefail; false | true", 1}, {"exec false", 1},
	}
	for _, c := range cases {
		t.Run(c.script, func(t *testing.T) {
			if output, got := run(t, newWorld(t), c.script); got != c.code {
				t.Errorf("got %d, want %d; output %q", got, c.code, output)
			}
		})
	}
}

func TestNothingLeavesTheSession(t *testing.T) {
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("host secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	scripts := []string{
		"cat " + secret, "cat /home/work/../../../../.." + secret,
		"cat /proc/self/environ", "source " + secret, ". " + secret, "sh " + secret, secret, "cat < " + secret,
		"while read l; do echo $l; done < " + secret,
		"cp " + secret + " here; cat here", "grep . " + secret, "exec cat " + secret,
		"echo $(<" + secret + ")", "cat <(cat " + secret + ")",
		"ls " + outside, "cd " + outside + " && pwd", "echo x >> " + secret, "rm -f " + secret,
		"mv " + secret + " .",
		"TMPDIR=" + outside + " cat <(echo x)", "pwd -P; cd -P " + outside, "command -p cat " + secret,
		"enable -f " + secret + " x", "head -c 5 " + secret, "tail -f " + secret + " & sleep 0.1",
		"echo " + outside + "/*", "[ -e " + secret + " ] && echo host secret",
		"ln -s " + secret + " l; cat l", "builtin source " + secret, "command . " + secret,
		"command -- source " + secret, "PATH=" + outside + " source secret", "cp -r " + outside + " .; cat */secret",
		"rm -rf " + outside + "/* " + outside + " /home/work/../../.." + outside,
		"test -r " + secret + " && echo host secret", "mapfile < " + secret + "; echo ${MAPFILE[@]}",
	}
	for _, script := range scripts {
		t.Run(script, func(t *testing.T) {
			output, _ := run(t, newWorld(t), script)
			if strings.Contains(output, "host secret") || strings.Contains(output, "secret\n") &&
				strings.HasPrefix(script, "ls") {
				t.Errorf("the host's file was read: %q", output)
			}
			if data, err := os.ReadFile(secret); err != nil || string(data) != "host secret" {
				t.Fatalf("the host's file was changed: %q, %v", data, err)
			}
		})
	}
	t.Run("the host's names cannot be guessed", func(t *testing.T) {
		program, link := filepath.Join(outside, "program"), filepath.Join(outside, "link")
		if err := errors.Join(os.WriteFile(program, nil, 0o700), os.Symlink(outside, link)); err != nil { //nolint:gosec
			t.Fatal(err)
		}
		for _, script := range []string{
			"PWD=%s; builtin pwd -P", "PWD=%s; command pwd -P", "builtin type -p %s", "builtin command -v %s",
			"PATH=$(dirname %s) builtin type program", "source %s", "builtin . %s",
			"PATH=" + outside + "; source program", "PATH=" + outside + "; type program",
		} {
			there, _ := run(t, newWorld(t), strings.ReplaceAll(script, "%s", link))
			gone, _ := run(t, newWorld(t), strings.ReplaceAll(script, "%s", link+"-none"))
			if there = strings.ReplaceAll(there, link, link+"-none"); there != gone {
				t.Errorf("%s: %q, and of what is not there %q", script, there, gone)
			}
			if strings.Contains(there, outside+"\n") || strings.Contains(there, program) {
				t.Errorf("%s: %q", script, there)
			}
		}
		if output, _ := run(t, newWorld(t), "echo ~daemon ~root ~work; unset HOME; sh -c 'echo ~'"); output !=
			"~daemon /root /home/work\n/home/work\n" {
			t.Errorf("homes are %q", output)
		}
	})
	t.Run("a script of the session can be sourced", func(t *testing.T) {
		if output, code := run(t, newWorld(t), "echo 'echo $1 from $PWD' > lib.sh; source lib.sh one; . ./lib.sh two; "+
			"builtin source /home/work/lib.sh three"); code != 0 ||
			output != "one from /home/work\ntwo from /home/work\nthree from /home/work\n" {
			t.Errorf("%q, %d", output, code)
		}
	})
	t.Run("links lead nowhere outside", func(t *testing.T) {
		w := newWorld(t)
		for _, target := range []string{secret, "../../../../../../../../../.." + secret} {
			if err := w.FS.Symlink(target, "/home/work/l"); err != nil {
				t.Fatal(err)
			}
			if output, _ := run(t, w, "cat l; cp l c; cat c; head l; echo x > l; rm -f c l"); strings.Contains(output,
				"host secret") {
				t.Error(output)
			}
		}
		if data, err := os.ReadFile(secret); err != nil || string(data) != "host secret" {
			t.Fatalf("the host's file was changed: %q, %v", data, err)
		}
	})
	t.Run("no program of the host is run", func(t *testing.T) {
		marker := filepath.Join(outside, "ran")
		for _, script := range []string{"/usr/bin/env touch " + marker, "/bin/touch " + marker,
			"python3 -c 'open(\"" + marker + "\",\"w\")'", "/usr/bin/python3 -c 'open(\"" + marker + "\",\"w\")'",
			"exec /bin/sh -c 'touch " + marker + "'", "command -p touch " + marker} {
			if _, code := run(t, newWorld(t), script); code == 0 {
				t.Errorf("%q succeeded", script)
			}
		}
		if _, err := os.Stat(marker); err == nil {
			t.Error("a program of the host ran")
		}
	})
	t.Run("the system's own places cannot be written", func(t *testing.T) {
		for _, script := range []string{"echo x > /etc/passwd", "rm -rf /etc", "mkdir /opt/x", "mv /etc/passwd .",
			"rm -rf /home/work", "cp /etc/passwd /usr/bin/x", "touch /proc/meminfo"} {
			if output, code := run(t, newWorld(t), script); code == 0 ||
				!strings.Contains(output, "Permission denied") && !strings.Contains(output, "permission denied") {
				t.Errorf("%q: code %d, %q", script, code, output)
			}
		}
	})
}

func TestMounts(t *testing.T) {
	data, fixed := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(fixed, "f"), []byte("fixed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	for dir, target := range map[string]string{data: "/home/work/data", fixed: "/mnt/fixed"} {
		source, err := os.OpenRoot(dir)
		if err == nil {
			err = w.FS.Mount(source, target, dir == fixed)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Run("what is written lands in the mounted directory", func(t *testing.T) {
		if output, code := run(t, w, "echo kept > data/k; cat data/k; ls"); output != "kept\ndata\n" || code != 0 {
			t.Errorf("got %q, %d", output, code)
		}
		if got, err := os.ReadFile(filepath.Join(data, "k")); string(got) != "kept\n" {
			t.Errorf("got %q, %v", got, err)
		}
	})
	t.Run("a read-only mount is read and not written", func(t *testing.T) {
		output, code := run(t, w,
			"cat /mnt/fixed/f; cp /mnt/fixed/f data/copy; mv data/copy .; ls data; echo x > /mnt/fixed/f")
		if !strings.HasPrefix(output, "fixed\nk\n") || !strings.Contains(output, "Read-only file system") || code == 0 {
			t.Errorf("got %q, %d", output, code)
		}
	})
	t.Run("a link out of a mount leads nowhere", func(t *testing.T) {
		if err := os.Symlink("/etc", filepath.Join(data, "out")); err != nil {
			t.Fatal(err)
		}
		if output, code := run(t, w, "cat data/out/passwd"); code == 0 {
			t.Errorf("got %q", output)
		}
	})
}

func TestJobs(t *testing.T) {
	t.Run("streams are apart and the code is kept", func(t *testing.T) {
		j, err := Start(newWorld(t), JobConfig{Argv: []string{"sh", "-c", "cat; echo wrong >&2; exit 4"}, Env: testEnv,
			Stdin: true})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(j.Stdin(), "in") //nolint:errcheck // the output tells
		if err := j.Stdin().Close(); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		var both sync.WaitGroup
		for from, to := range map[io.Reader]*bytes.Buffer{j.Stdout(): &out, j.Stderr(): &errs} {
			both.Go(func() {
				if _, err := to.ReadFrom(from); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		if code := j.Wait(); code != 4 || out.String() != "in" || errs.String() != "wrong\n" {
			t.Errorf("got %q, %q, %d", out.String(), errs.String(), code)
		}
	})
	t.Run("a signal ends it with 128 and its number", func(t *testing.T) {
		j, err := Start(newWorld(t), JobConfig{Argv: []string{"sleep", "600"}, Env: testEnv})
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Signal(2); err != nil || j.Wait() != 130 {
			t.Errorf("got %v, %d", err, j.Wait())
		}
	})
	t.Run("one that waits for who reads can be ended", func(t *testing.T) {
		j, err := Start(newWorld(t), JobConfig{Argv: []string{"seq", "1000000"}, Env: testEnv})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(j.Stdout(), make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		j.Kill()
		if code := j.Wait(); code != 143 {
			t.Errorf("got %d, want 143", code)
		}
	})
	t.Run("a loop without commands can be ended", func(t *testing.T) {
		j, err := Start(newWorld(t), JobConfig{Script: "while :; do :; done", Env: testEnv})
		if err != nil {
			t.Fatal(err)
		}
		j.Kill()
		if code := j.Wait(); code != 143 {
			t.Errorf("got %d, want 143", code)
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	w := newWorld(t)
	killed := 0
	w.OutOfMemory = func() { killed++ }
	if output, code := run(t, w, "stress --vm-bytes 100M --timeout 0.01; stress --vm 2 --vm-bytes 400M"); code != 137 ||
		!strings.Contains(output, "Killed") || killed != 1 {
		t.Errorf("got code %d, %d kills, %q", code, killed, output)
	}
}

func TestRunawayScriptsFailAlone(t *testing.T) {
	scripts := map[string]string{
		"endless recursion": "f() { f; }; f",
		"recursion by eval": "f() { eval f; }; f",
		"nested command":    "f() { x=$(f); }; f",
		"a bomb of forks":   "b() { b | b & }; b; wait",
		"a line too long":   "cat /dev/zero | wc -w & sleep 0.05; head -c 20000000 /dev/zero | tail",
		"a script too long": "head -c 300000 /dev/zero | sh",
		"deep parentheses":  "eval \"$(printf '(%.0s' {1..100000})\"",
		"odd tests": "[[ -O /etc/passwd && -G /proc/meminfo && /etc/passwd -nt /etc/group && -N /tmp ]]; " +
			"test -k /tmp; [ a -ef b ]",
		"odd expansions": "x=abc; echo ${x@Q} ${x@P} ${x@A} ${!x*} ${x^^} ${x//b/y} ${x:1:1} ${#x}",
		"unsupported things": "coproc x { :; }; select i in a; do break; done < /dev/null; exec 5<>/tmp/x; enable " +
			"-a; bind x; ulimit -n; disown; let 1/0; declare -n r=r; echo $r",
	}
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			s, err := New(newWorld(t), Config{Env: testEnv, Stdout: io.Discard, Stderr: io.Discard})
			if err != nil {
				t.Fatal(err)
			}
			s.Run(ctx, script, "test")
			if ctx.Err() != nil {
				t.Error("it did not end by itself")
			}
		})
	}
}
