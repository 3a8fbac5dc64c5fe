package node_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway/backend/guest/node"
	"slipway/backend/session"
	"slipway/backend/terminal"
	"slipway/gpu"
)

func TestAKernelIsAContainer(t *testing.T) {
	eachRunner(t, func(t *testing.T, by node.Runner) {
		j := newJobBy(t, by)
		j.spec.Shm, j.spec.Processes = 3*gpu.MiB, 200
		j.env = append(j.env, "CUDA_VISIBLE_DEVICES=0,1")
		asked := time.Now()
		j.start()
		client := j.connect()
		linked := time.Now()
		begun, err := node.ReadBegun(j.dir, "main1")
		must(t, err)
		t.Logf("the guest started after %s and its link came after %s", begun.At.Sub(asked), linked.Sub(asked))

		host, err := os.Hostname()
		must(t, err)
		bits, shm := "00000000000001eb", "df --output=size -k /dev/shm | tail -1 | tr -d ' '"
		if by == node.Apptainer { // which gives no capabilities, and shared memory without a limit of its own
			bits, shm = "0000000000000000", "echo 3072"
		}
		for script, want := range map[string]string{
			"id -u; id -g":                  strconv.Itoa(j.uid) + "\n" + strconv.Itoa(j.uid),
			"id -un; echo ~; pwd":           "work\n/home/work\n/home/work",
			"hostname":                      "main1",
			"tr '\\0' ' ' </proc/1/cmdline": "slipway-guest init",
			"sed -nE 's/^Cap[PEB]..:.//p' /proc/1/status | uniq":                  bits,
			"sed -nE 's/^Cap...:.//p' /proc/self/status | sort -u":                "0000000000000000",
			"sed -nE 's/^NoNewPrivs:.//p' /proc/1/status":                         "1",
			"echo $IMAGE, $GREETING, $CUDA_VISIBLE_DEVICES, $SLURM_JOB_ID$SECRET": "yes, good day, 0,1,",
			"echo $SLIPWAY_NODE":                   host,
			"getent hosts main1 | cut -d ' ' -f 1": "127.0.1.1",
			shm:                                    "3072",
			"ulimit -u":                            "200",
			"test -c /dev/null && echo x >/dev/null; echo $?":          "0",
			"touch /etc/new && rm -r /etc/new; echo $?":                "0",
			"stat -c %a /tmp /dev/shm /.slipway/spool":                 "1777\n1777\n700",
			"cat /proc/self/oom_score_adj":                             "800",
			"ls /.slipway":                                             "config.json\nguest\nlink\nspool",
			"touch /.slipway/guest 2>/dev/null; echo $?":               "1",
			"mount -t tmpfs x /mnt 2>/dev/null; test $? != 0; echo $?": "0",
		} {
			if got := j.run(client, script); got != want {
				t.Errorf("%s: %q, want %q", script, got, want)
			}
		}
		stats, err := node.ReadStats(t.Context(), j.dir, "main1")
		must(t, err)
		if stats.At.IsZero() || stats.CPU <= 0 || stats.Memory <= 0 {
			t.Errorf("a sample of use: %+v", stats)
		}
		if client.Hello().PID == 0 || j.run(client, "echo still there") != "still there" {
			t.Error("the sample ended the link")
		}
	})
}

func TestATerminalAndFiles(t *testing.T) {
	eachRunner(t, func(t *testing.T, by node.Runner) {
		j := newJobBy(t, by).start()
		client := j.connect()
		opened, err := client.OpenTerminal(t.Context(), session.TerminalRequest{Cols: 80, Rows: 24})
		must(t, err)
		stream, err := client.AttachTerminal(t.Context(), session.AttachRequest{Terminal: opened.ID, Client: "test"})
		must(t, err)
		var shown bytes.Buffer
		viewer := terminal.NewViewer(terminal.ViewerConfig{Client: "test", Output: &shown})
		_, err = viewer.Write([]byte("test -t 0 && tty && exit 3\n"))
		must(t, err)
		code, err := viewer.Run(t.Context(), terminal.NewConn(stream))
		must(t, err)
		if code != 3 || !strings.Contains(shown.String(), "/dev/pts/0") {
			t.Errorf("the shell ended with %d and showed %q", code, shown.String())
		}

		j.run(client, "echo of the person >note")
		file, err := client.ReadFile(t.Context(), session.ReadRequest{Path: "note"})
		must(t, err)
		content, err := io.ReadAll(file)
		must(t, errors.Join(err, file.Close()))
		if string(content) != "of the person\n" {
			t.Errorf("the file has %q", content)
		}
		home, err := os.ReadFile(filepath.Join(j.dir, "home/note"))
		must(t, err)
		if !bytes.Equal(home, content) {
			t.Errorf("the home in the shared folder has %q", home)
		}
	})
}

func TestABatchCommandEndsWithItsCode(t *testing.T) {
	eachRunner(t, func(t *testing.T, by node.Runner) {
		j := newJobBy(t, by)
		j.spec.Batch = true
		j.config.Command = "echo begin; echo '" + strings.Repeat("x", 40_000) + "'; echo failed >&2; exit 7"
		j.start().begin()
		e := j.exit()
		if e.Code != 7 || e.Why != "" || e.OOMKilled || e.Job != "41" || e.Started.IsZero() ||
			e.Ended.Before(e.Started) {
			t.Errorf("the record is %+v", e)
		}
		if code := j.cmd.ProcessState.ExitCode(); code != 7 {
			t.Errorf("the runner ended with %d", code)
		}
		if want := "begin\n" + strings.Repeat("x", 40_000) + "\nfailed\n"; j.log() != want {
			t.Errorf("the log is %.200q", j.log())
		}
		if _, err := node.ReadMeeting(j.dir, "main1"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after the end there is a meeting: %v", err)
		}
		if left, err := filepath.Glob(j.path("local/runs/*")); err != nil || len(left) > 0 {
			t.Errorf("%q stays on the node", left)
		}
	})
}

func TestSecretsAreThePersonsAlone(t *testing.T) {
	j := newJob(t).start()
	j.meet()
	for _, pattern := range []string{"run/*", "local/runs/*/config.json", "local/runs/*/*.sock", "local"} {
		found, err := filepath.Glob(j.path(pattern))
		must(t, err)
		if len(found) == 0 {
			t.Errorf("there is no %s", pattern)
		}
		for _, path := range found {
			info, err := os.Stat(path)
			must(t, err)
			if info.Mode().Perm()&0o077 != 0 || int(info.Sys().(*syscall.Stat_t).Uid) != j.uid {
				t.Errorf("%s is %s", path, info.Mode())
			}
		}
	}
}

func TestTermReachesTheCommand(t *testing.T) {
	eachRunner(t, func(t *testing.T, by node.Runner) {
		j := newJobBy(t, by)
		j.config.Command = "trap 'echo asked; exit 9' TERM; echo waits; while :; do sleep 0.01; done"
		j.start().begin()
		j.until("the command", func() bool { return strings.Contains(j.log(), "waits") })
		must(t, j.cmd.Process.Signal(syscall.SIGTERM))
		if e := j.exit(); e.Code != 9 {
			t.Errorf("it ended with %d", e.Code)
		}
		if !strings.Contains(j.log(), "asked") {
			t.Errorf("the log is %q", j.log())
		}
	})
}

func TestTermBeforeTheGuestConnects(t *testing.T) {
	j := newJob(t).start()
	j.until("the mark", func() bool {
		_, err := node.ReadBegun(j.dir, "main1")
		return err == nil
	})
	must(t, j.cmd.Process.Signal(syscall.SIGTERM))
	if e := j.exit(); e.Code != 0 {
		t.Errorf("it ended with %d", e.Code)
	}
}

func TestNothingOutlivesARunner(t *testing.T) {
	eachRunner(t, func(t *testing.T, by node.Runner) {
		for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			t.Run(signal.String(), func(t *testing.T) {
				j := newJobBy(t, by).start()
				client := j.connect()
				j.run(client, "for i in 1 2 3; do (setsid nohup sleep 98765 >/dev/null 2>&1 &); done")
				j.run(client, "until [ $(pgrep -c sleep) = 3 ]; do :; done")
				must(t, j.cmd.Process.Signal(signal))
				<-j.exited
				ended := time.Now()
				j.expectNothing()
				t.Logf("all were gone %s after the runner", time.Since(ended))
			})
		}
	})
}

func TestABatchCommandRunsOnce(t *testing.T) {
	j := newJob(t)
	j.spec.Batch = true
	j.config.Command = "echo ran >>runs"
	j.start().begin()
	if e := j.exit(); e.Code != 0 {
		t.Fatalf("it ended with %+v", e)
	}
	j.start()
	if e := j.exit(); e.Code != 0 || e.Why != "" {
		t.Errorf("a repeated start changed the record to %+v", e)
	}
	must(t, os.Remove(filepath.Join(j.dir, "main1.exit"))) // as if the node had lost power
	j.start()
	e := j.exit()
	if e.Code != node.CodeFailed || e.Why != node.Restarted || !e.Started.IsZero() {
		t.Errorf("the record is %+v", e)
	}
	if lines := strings.Split(strings.TrimSpace(j.log()), "\n"); !strings.Contains(lines[len(lines)-1], "twice") {
		t.Errorf("the log is %q", lines)
	}
	if runs, err := os.ReadFile(filepath.Join(j.dir, "home/runs")); err != nil || string(runs) != "ran\n" {
		t.Errorf("it ran: %q, %v", runs, err)
	}
}

func TestASecondStartBesideTheFirst(t *testing.T) {
	for _, batch := range []bool{true, false} {
		t.Run(fmt.Sprint("batch ", batch), func(t *testing.T) {
			j := newJob(t)
			j.spec.Batch = batch
			j.start()
			before, first := j.meet(), j.exited
			out, err := j.command("node", j.dir).CombinedOutput()
			if err == nil || !strings.Contains(string(out), "already runs") {
				t.Errorf("the second start says %q, %v", out, err)
			}
			select {
			case <-first:
				t.Fatal("the first has ended")
			default:
			}
			if _, err := node.ReadExit(j.dir, "main1"); !errors.Is(err, fs.ErrNotExist) || j.meet() != before {
				t.Errorf("the second start changed the records: %v", err)
			}
			if got := j.run(j.connect(), "echo works"); got != "works" {
				t.Errorf("the first says %q", got)
			}
		})
	}
}

func TestAnInteractiveKernelBeginsAgain(t *testing.T) {
	eachRunner(t, func(t *testing.T, by node.Runner) {
		j := newJobBy(t, by).start()
		j.run(j.connect(), "echo kept >note; touch /gone")
		first, err := node.ReadBegun(j.dir, "main1")
		must(t, err)
		must(t, j.cmd.Process.Kill())
		<-j.exited
		j.expectNothing()
		j.env = append(j.env, "SLURM_RESTART_COUNT=1")
		j.start()
		j.until("the second start", func() bool {
			second, err := node.ReadBegun(j.dir, "main1")
			return err == nil && second.At.After(first.At) && second.Restarts == 1
		})
		j.until("its meeting", func() bool {
			m, err := node.ReadMeeting(j.dir, "main1")
			return err == nil && m.PID == j.cmd.Process.Pid
		})
		if got := j.run(j.connect(), "cat note; ls /gone 2>/dev/null"); got != "kept" {
			t.Errorf("the home has %q", got)
		}
	})
}

func TestMounts(t *testing.T) {
	eachRunner(t, func(t *testing.T, by node.Runner) {
		j := newJobBy(t, by)
		mine, theirs := j.folder("mine"), j.folder("theirs")
		j.folder("mine/hidden/deep")
		must(t, os.WriteFile(j.path("mine/hidden/secret"), nil, 0o644))
		must(t, os.WriteFile(j.path("theirs/data"), []byte("data"), 0o644))
		j.layer(links("data", "/etc"))
		j.mount(mine, "/home/work/mine", false)
		j.mount(theirs, "/data/theirs", true)
		j.spec.Hidden = []string{"/home/work/mine/hidden"}
		client := j.start().connect()
		for script, want := range map[string]string{
			"cat /data/theirs/data /etc/theirs/data":                          "datadata",
			"echo x 2>/dev/null >/etc/theirs/data; echo $?":                   "1",
			"echo x >mine/fresh; stat -c %u mine/fresh":                       strconv.Itoa(j.uid),
			"ls mine/hidden; touch mine/hidden/x 2>/dev/null || echo refused": "refused",
		} {
			if got := j.run(client, script); got != want {
				t.Errorf("%s: %q, want %q", script, got, want)
			}
		}
		info, err := os.Stat(j.path("mine/fresh"))
		must(t, err)
		if int(info.Sys().(*syscall.Stat_t).Uid) != j.uid {
			t.Error("a file that it wrote is somebody else's")
		}
		if _, err := os.Stat("/etc/theirs"); err == nil {
			t.Error("a link of the image led a mount to the node")
		}
	})
}

func TestAContainerThatCannotBeMade(t *testing.T) {
	for reason, change := range map[string]func(j *job){
		"no such file": func(j *job) { j.mount(j.path("none"), "/none", true) },
		"damaged": func(j *job) {
			j.layer(files("file", "content"))
			path := filepath.Join(j.spec.Store, strings.TrimPrefix(j.spec.Layers[1], "sha256:")+".tar")
			data, err := os.ReadFile(path)
			must(j.t, err)
			must(j.t, os.WriteFile(path, bytes.Replace(data, []byte("content"), []byte("kontent"), 1), 0o644))
		},
		"somebody else": func(j *job) {
			must(j.t, os.Mkdir(j.spec.Local, 0o777))
			must(j.t, os.Chown(j.spec.Local, 1, 1))
		},
	} {
		t.Run(reason, func(t *testing.T) {
			j := newJob(t)
			change(j)
			j.start()
			e := j.exit()
			if e.Code != node.CodeFailed || e.Why != "" || !e.Started.IsZero() {
				t.Errorf("the record is %+v", e)
			}
			lines := strings.Split(strings.TrimSpace(j.log()), "\n")
			if last := lines[len(lines)-1]; !strings.Contains(last, reason) {
				t.Errorf("the log ends with %q", last)
			}
		})
	}
}
