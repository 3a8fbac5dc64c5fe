//go:build linux

package guest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slipway/backend/guest/link"
	"slipway/backend/session"
)

func readRoot(t testing.TB, b *box, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(b.root, path))
	must(t, err)
	return string(data)
}

// waitFor polls: the tests' only way to see into other processes.
func waitFor(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func TestUserIsKnownInImagesThatHaveOthers(t *testing.T) {
	b := newBox(t, true)
	b.write("etc/passwd",
		"root:x:0:0:root:/root:/bin/bash\njovyan:x:1234:100::/home/jovyan:/bin/bash\nwork:x:77:77::/old:/bin/false\n")
	b.write("etc/group", "root:x:0:\nusers:x:100:jovyan\nstaff:x:1234:\n")
	b.write("etc/shadow", "root:*:1:0:99999:7:::\n")
	b.write("etc/skel/.bashrc", "export FROM_SKEL=1\n")
	b.write("home/work/data/notes.txt", "kept")
	client := b.start().connect()
	if got := run(t, client, "id").out; got != "uid=1234(work) gid=1234(staff) groups=1234(staff)\n" {
		t.Errorf("id says %q", got)
	}
	if passwd := readRoot(t, b, "etc/passwd"); strings.Contains(passwd, "/old") || !strings.Contains(passwd, "jovyan") {
		t.Errorf("passwd is %q", passwd)
	}
	if shadow := readRoot(t, b, "etc/shadow"); !strings.Contains(shadow, "work:*:") {
		t.Errorf("shadow is %q", shadow)
	}
	if got := run(t, client, "sh", "-c",
		"echo more >> data/notes.txt && stat -c %U . data .bashrc"); got.out != "work\nwork\nwork\n" {
		t.Errorf("home is not the person's: %+v", got)
	}
	s := open(t, client, session.TerminalRequest{Cols: 80, Rows: 24})
	s.typeLine("echo skel=$FROM_SKEL")
	s.expect("skel=1")
}

func TestAFolderAsTheHomeGetsStartFilesOnce(t *testing.T) {
	for _, used := range []bool{false, true} {
		b := newBox(t, true)
		home := t.TempDir()
		must(t, errors.Join(os.Chown(home, 1234, 1234), os.Mkdir(filepath.Join(home, "data"), 0o755)))
		b.binds = append(b.binds, home+":/home/work", t.TempDir()+":/home/work/data")
		b.write("etc/skel/.bashrc", "true\n")
		if used {
			must(t, os.WriteFile(filepath.Join(home, "notes"), nil, 0o600))
		}
		run(t, b.start().connect(), "true")
		file, err := os.Stat(filepath.Join(home, ".bashrc"))
		if used != (err != nil) {
			t.Errorf("used before: %t: the start file is %v", used, err)
		}
		if used {
			continue
		}
		value := make([]byte, 32)
		n, err := unix.Getxattr(filepath.Join(home, ".bashrc"), session.StartFileMark, value)
		if err != nil || string(value[:n]) != fmt.Sprint(file.ModTime().UnixNano()) {
			t.Errorf("its mark is %q, %v", value[:max(n, 0)], err)
		}
	}
}

func TestMountsInTheHomeAreLeftAlone(t *testing.T) {
	b := newBox(t, true)
	outside := t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "theirs"), nil, 0o644))
	b.binds = append(b.binds, outside+":/home/work/project/data")
	client := b.start().connect()
	if got := run(t, client, "stat", "-c", "%u", ".", "project", "project/data",
		"project/data/theirs"); got.out != "1234\n1234\n0\n0\n" {
		t.Errorf("owners are %+v", got)
	}
}

func TestEnvironment(t *testing.T) {
	b := newBox(t, true)
	client := b.start().connect()
	env := run(t, client, "env").out
	for _, want := range []string{
		"PATH=/opt/slipway/bin:/opt/tools/bin:/usr/bin:/bin:/home/work/.local/bin",
		"IMAGE=yes", "HOME=/home/work", "USER=work",
		"LANG=C.UTF-8", "SLIPWAY_SESSION=abcdefghij12", "GREETING=good day", "SHELL=/bin/bash",
	} {
		if !strings.Contains("\n"+env, "\n"+want+"\n") {
			t.Errorf("%q is missing in\n%s", want, env)
		}
	}
	got, err := tryRun(t, client, session.ExecRequest{Command: []string{"sh", "-c", "echo $GREETING $PWD"},
		Env: []session.EnvVar{{Name: "GREETING", Value: "bye"}}, Dir: "/tmp"}, "")
	if err != nil || got.out != "bye /tmp\n" {
		t.Errorf("got %+v, %v", got, err)
	}
	s := open(t, client, session.TerminalRequest{Cols: 91, Rows: 33})
	s.expect("work@")
	s.typeLine("echo $TERM $SLIPWAY_SESSION $PWD; stty size; tty; test -w $(tty) && echo own")
	s.expect("xterm-256color abcdefghij12 /home/work\r\n33 91\r\n/dev/pts/0\r\nown")
	s.Resize(100, 40)
	waitFor(t, "the new size", func() bool {
		list, err := client.ListTerminals(t.Context())
		return err == nil && len(list) == 1 && list[0].Cols == 100 && list[0].Rows == 40
	})
	s.typeLine("stty size")
	s.expect("40 100")
}

func TestExec(t *testing.T) {
	client := newBox(t, true).start().connect()
	t.Run("passes all three streams and the code", func(t *testing.T) {
		got, err := tryRun(t, client, session.ExecRequest{Command: []string{"sh", "-c", "cat; echo oops >&2; exit 42"}},
			"some input")
		if err != nil || got != (result{"some input", "oops\n", 42}) {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	t.Run("passes much output untouched", func(t *testing.T) {
		if got := run(t, client, "head", "-c", "8000000", "/dev/zero"); got.code == 0 {
			t.Error("there is no /dev/zero in the test's container")
		}
		got, err := tryRun(t, client, session.ExecRequest{Command: []string{"cat"}},
			strings.Repeat("0123456789abcdef", 200_000))
		if err != nil || got.out != strings.Repeat("0123456789abcdef", 200_000) {
			t.Errorf("got %d bytes, %v", len(got.out), err)
		}
	})
	for name, test := range map[string]struct {
		req  session.ExecRequest
		code session.Code
	}{
		"names a missing program": {session.ExecRequest{Command: []string{"no-such-program"}},
			"process_start_not-found"},
		"names a missing path": {session.ExecRequest{Command: []string{"/no/such/program"}},
			"process_start_not-found"},
		"names a file that cannot": {session.ExecRequest{Command: []string{"/etc/passwd"}}, "process_start_forbidden"},
		"names a missing folder": {session.ExecRequest{Command: []string{"ls"}, Dir: "/nowhere"},
			"guest_call_internal-error"},
		"refuses an empty command": {session.ExecRequest{}, "session_update_invalid"},
		"names a missing interpreter": {session.ExecRequest{Command: []string{"/home/work/script"}},
			"process_start_forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.req.Command != nil && test.req.Command[0] == "/home/work/script" {
				run(t, client, "sh", "-c", "echo '#!/no/interpreter' > script; chmod +x script")
			}
			_, err := client.Exec(t.Context(), test.req)
			if session.CodeOf(err) != test.code {
				t.Errorf("got %v, want %s", err, test.code)
			}
		})
	}
	t.Run("ends the command when the caller leaves", func(t *testing.T) {
		stream, err := client.Exec(t.Context(), session.ExecRequest{Command: []string{"sleep", "987654"}})
		must(t, err)
		must(t, stream.Close())
		waitFor(t, "the command's end", func() bool {
			return !strings.Contains(run(t, client, "ps", "-eo", "args").out, "sleep 987654")
		})
	})
	t.Run("does not wait for what the command leaves behind", func(t *testing.T) {
		if got := run(t, client, "sh", "-c", "sleep 876543 & echo done"); got.out != "done\n" {
			t.Errorf("got %+v", got)
		}
	})
}

func TestShellsOutliveTheAgent(t *testing.T) {
	b := newBox(t, true).start()
	client := b.connect()
	s := open(t, client, session.TerminalRequest{Cols: 80, Rows: 24, Title: "work"})
	s.typeLine("echo beg''un; (for i in $(seq 1 2000); do echo line-$i; done; echo coun''ted) &")
	s.expect("begun")
	must(t, b.listener.Close()) // the agent is gone
	must(t, client.Close())
	<-s.done
	if _, err := s.Viewer.Write([]byte("echo typed-$((40+2))-while-away\n")); err != nil {
		t.Fatal(err)
	}
	b.listen()
	client = b.connect()
	list, err := client.ListTerminals(t.Context())
	if err != nil || len(list) != 1 || list[0].ID != s.id || list[0].ExitCode != nil {
		t.Fatalf("terminals are %+v, %v", list, err)
	}
	s.attach(client)
	s.expect("counted")
	s.expect("typed-42-while-away")
	if n := strings.Count(s.text(), "line-1234\r\n"); n != 1 {
		t.Errorf("a line was shown %d times", n)
	}
	if n := strings.Count(s.text(), "typed-42"); n != 1 {
		t.Errorf("input arrived %d times", n)
	}
	s.typeLine("exit 5")
	if code := s.ended(); code != 5 {
		t.Errorf("the shell ended with %d", code)
	}
	list, err = client.ListTerminals(t.Context())
	if err != nil || len(list) != 1 || list[0].ExitCode == nil || *list[0].ExitCode != 5 {
		t.Errorf("terminals are %+v, %v", list, err)
	}
	must(t, client.CloseTerminal(t.Context(), s.id))
	if err := client.CloseTerminal(t.Context(), s.id); session.CodeOf(err) != "session_use_not-found" {
		t.Errorf("closing again gave %v", err)
	}
}

func TestClosingATerminal(t *testing.T) {
	b := newBox(t, true).start()
	client := b.connect()
	s := open(t, client, session.TerminalRequest{Cols: 80, Rows: 24})
	s.typeLine("nohup sleep 7771 & sleep 7772")
	// nohup turns into the program only after it has seen to its staying.
	runs := func(program string) bool {
		return slices.Contains(strings.Split(run(t, client, "ps", "-eo", "args").out, "\n"), program)
	}
	waitFor(t, "both programs", func() bool { return runs("sleep 7771") && runs("sleep 7772") })
	must(t, client.CloseTerminal(t.Context(), s.id))
	s.ended()
	waitFor(t, "the foreground program's end", func() bool { return !runs("sleep 7772") })
	if !runs("sleep 7771") {
		t.Error("what was started to stay is gone")
	}
	waitFor(t, "the spool's removal", func() bool {
		entries, err := os.ReadDir(filepath.Join(b.root, ".slipway/spool"))
		return err == nil && len(entries) == 0
	})
}

func TestServices(t *testing.T) {
	client := newBox(t, true).start().connect()
	start := func(req link.ServiceRequest) (link.Service, error) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return client.StartService(ctx, req)
	}
	for name, test := range map[string]struct {
		req  link.ServiceRequest
		code session.Code
		says string
	}{
		"not installed": {link.ServiceRequest{ID: "a", Argv: []string{"jupyter-nothing"}, Port: 9001},
			"app_start_not-installed", "jupyter-nothing"},
		"exited": {link.ServiceRequest{ID: "b", Argv: []string{"/hello", "fail", "3"}, Port: 9002},
			"app_start_exited", "cannot read the settings"},
		"timeout": {link.ServiceRequest{ID: "c", Argv: []string{"/hello", "hang"}, Port: 9003,
			Timeout: 5 * time.Second}, "app_start_timeout", "still thinking"},
		"broken": {link.ServiceRequest{ID: "d", Argv: []string{"/hello", "serve", "9004", "503"}, Port: 9004,
			Ready: "/", Timeout: 300 * time.Millisecond}, "app_start_timeout", "9004"},
	} {
		t.Run("fails as "+name, func(t *testing.T) {
			_, err := start(test.req)
			if session.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("is ready, served, found in use, stopped", func(t *testing.T) {
		web := link.ServiceRequest{ID: "web", Argv: []string{"/hello", "serve", "9010", "404"}, Port: 9010,
			Ready: "/tree"}
		got, err := start(web)
		if err != nil || got.State != link.ServiceReady {
			t.Fatalf("got %+v, %v", got, err)
		}
		if again, err := start(web); err != nil || again.State != link.ServiceReady {
			t.Errorf("again: %+v, %v", again, err)
		}
		if ports, err := client.Listening(t.Context()); err != nil || !slices.Contains(ports, 9010) {
			t.Errorf("the ports that take connections are %v, %v", ports, err)
		}
		conn, err := client.Dial(t.Context(), 9010)
		must(t, err)
		_, err = io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n")
		must(t, err)
		if answer, err := io.ReadAll(conn); err != nil || !strings.HasSuffix(string(answer), "yes") {
			t.Errorf("the port answers %q, %v", answer, err)
		}
		other := web
		other.ID = "other"
		if _, err := start(other); session.CodeOf(err) != "app_open_conflict" {
			t.Errorf("a second program on the port gave %v", err)
		}
		must(t, client.StopService(t.Context(), "web"))
		if _, err := client.Dial(t.Context(), 9010); session.CodeOf(err) != "app_start_timeout" {
			t.Errorf("dialling a closed port gave %v", err)
		}
		if got, err := start(web); err != nil || got.State != link.ServiceReady {
			t.Errorf("starting anew: %+v, %v", got, err)
		}
	})
	t.Run("finds what is installed", func(t *testing.T) {
		found, err := client.Which(t.Context(), []string{"bash", "no-such-thing", "/hello"})
		if err != nil || len(found) != 2 || found["bash"] != "/usr/bin/bash" || found["/hello"] != "/hello" {
			t.Errorf("got %v, %v", found, err)
		}
	})
}
