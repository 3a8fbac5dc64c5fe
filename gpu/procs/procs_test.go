package procs_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/gpu/procs"
)

var (
	outer = strings.Repeat("0123456789abcdef", 4)
	inner = strings.Repeat("fedcba9876543210", 4)
)

func TestContainerIDsAreFoundWhateverTheEngine(t *testing.T) {
	for name, c := range map[string]struct {
		cgroup string
		want   []string
	}{
		"v1 docker": {"12:pids:/docker/" + outer + "\n1:name=systemd:/docker/" + outer + "\n",
			[]string{outer}},
		"v2 docker with cgroupfs": {"0::/docker/" + outer + "\n", []string{outer}},
		"v2 docker with systemd":  {"0::/system.slice/docker-" + outer + ".scope\n", []string{outer}},
		"rootless docker": {"0::/user.slice/user-1000.slice/user@1000.service/app.slice/docker-" + outer +
			".scope\n", []string{outer}},
		"podman": {"0::/machine.slice/libpod-" + outer + ".scope/container\n", []string{outer}},
		"containerd for kubernetes": {"0::/kubepods.slice/kubepods-pod1234.slice/cri-containerd-" + outer +
			".scope\n", []string{outer}},
		"docker in docker": {"0::/docker/" + outer + "/docker/" + inner + "\n", []string{outer, inner}},
		"docker in docker, systemd": {"0::/system.slice/docker-" + outer + ".scope/system.slice/docker-" + inner +
			".scope\n", []string{outer, inner}},
		"seen from another name space": {"0::/../" + outer + "\n", []string{outer}},
		"a session of a person":        {"0::/user.slice/user-1000.slice/session-3.scope\n", nil},
		"the root":                     {"0::/\n", nil},
		"a longer number":              {"0::/x/" + outer + "0\n", nil},
		"a shorter number":             {"0::/x/" + outer[:63] + "\n", nil},
		"nothing":                      {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := procs.ContainerIDs([]byte(c.cgroup)); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// tree is a /proc and an /etc/passwd in a directory.
type tree string

func (root tree) write(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(string(root), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (root tree) process(t *testing.T, pid int, name string, start, uid int, cgroup string) {
	t.Helper()
	dir := fmt.Sprintf("proc/%d/", pid)
	root.write(t, dir+"stat", fmt.Sprintf("%d (%s) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 %d 1 2 3\n", pid, name,
		start))
	root.write(t, dir+"status", fmt.Sprintf("Name:\t%s\nUid:\t%d\t0\t0\t0\n", name, uid))
	root.write(t, dir+"cgroup", cgroup)
}

func newTree(t *testing.T) tree {
	root := tree(t.TempDir())
	root.write(t, "etc/passwd", "root:x:0:0:root:/root:/bin/sh\nmina:x:1000:1000::/home/mina:/bin/sh\n")
	root.process(t, 1, "init", 1, 0, "0::/\n")
	return root
}

func noMore(int) (string, bool) { return "", false }

func TestLookupSaysWhoseAProcessIs(t *testing.T) {
	root := newTree(t)
	root.process(t, 40, "a) S (b 7", 777, 1000, "0::/docker/"+outer+"/docker/"+inner+"\n")
	table := procs.NewTable(procs.Config{Root: string(root), Name: noMore})
	p, err := table.Lookup(40)
	if err != nil {
		t.Fatal(err)
	}
	if p.PID != 40 || p.Start != 777 || p.Name != "a) S (b 7" || p.UID != 1000 || p.User != "mina" ||
		!slices.Equal(p.Containers, []string{outer, inner}) {
		t.Errorf("got %+v", p)
	}
}

func TestAPIDThatIsUsedAgainIsAnotherProcess(t *testing.T) {
	root := newTree(t)
	root.process(t, 40, "python", 777, 1000, "0::/docker/"+outer+"\n")
	table := procs.NewTable(procs.Config{Root: string(root), Name: noMore})
	if _, err := table.Lookup(40); err != nil {
		t.Fatal(err)
	}
	root.process(t, 40, "Xorg", 888, 0, "0::/user.slice\n")
	p, err := table.Lookup(40)
	if err != nil || p.Start != 888 || p.User != "root" || p.Containers != nil {
		t.Errorf("got %+v, %v", p, err)
	}
}

func TestAProgramThatReplacesItselfKeepsItsContainer(t *testing.T) {
	root := newTree(t)
	root.process(t, 40, "sh", 777, 1000, "0::/docker/"+outer+"\n")
	table := procs.NewTable(procs.Config{Root: string(root), Name: noMore})
	if _, err := table.Lookup(40); err != nil {
		t.Fatal(err)
	}
	root.process(t, 40, "python3", 777, 1000, "0::/docker/"+outer+"\n")
	if p, err := table.Lookup(40); err != nil || p.Name != "python3" || !slices.Equal(p.Containers, []string{outer}) {
		t.Errorf("got %+v, %v", p, err)
	}
}

func TestAProcessThatEndedIsGone(t *testing.T) {
	root := newTree(t)
	table := procs.NewTable(procs.Config{Root: string(root)})
	if _, err := table.Lookup(41); !errors.Is(err, procs.ErrGone) {
		t.Errorf("got %v", err)
	}
}

func TestAProcessBehindHidepidIsHidden(t *testing.T) {
	root := newTree(t)
	if err := os.RemoveAll(filepath.Join(string(root), "proc/1")); err != nil {
		t.Fatal(err)
	}
	table := procs.NewTable(procs.Config{Root: string(root)})
	if _, err := table.Lookup(41); !errors.Is(err, procs.ErrHidden) {
		t.Errorf("got %v", err)
	}
}

func TestAStateThatMakesNoSenseIsAnError(t *testing.T) {
	for _, stat := range []string{"", "40", "40 (x", "40 (x) S 1",
		"40 (x) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 soon 1"} {
		root := newTree(t)
		root.process(t, 40, "x", 1, 0, "")
		root.write(t, "proc/40/stat", stat)
		if p, err := procs.NewTable(procs.Config{Root: string(root)}).Lookup(40); err == nil {
			t.Errorf("%q gave %+v", stat, p)
		}
	}
}

func TestUsersThatTheFileLacksAreAskedForOnce(t *testing.T) {
	root := newTree(t)
	asked := 0
	ask := func(uid int) (string, bool) {
		asked++
		return "guest", uid == 5000
	}
	table := procs.NewTable(procs.Config{Root: string(root), Name: ask})
	for pid, c := range map[int]struct {
		uid  int
		want string
	}{50: {5000, "guest"}, 51: {5000, "guest"}, 52: {6000, "6000"}, 53: {6000, "6000"}} {
		root.process(t, pid, "x", pid, c.uid, "")
		if p, err := table.Lookup(pid); err != nil || p.User != c.want {
			t.Errorf("%d: got %+v, %v; want %s", pid, p, err, c.want)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times for 2 users", asked)
	}
}

func TestKeepForgetsTheOthers(t *testing.T) {
	root := newTree(t)
	root.process(t, 40, "x", 1, 1000, "")
	table := procs.NewTable(procs.Config{Root: string(root), Name: noMore})
	if _, err := table.Lookup(40); err != nil {
		t.Fatal(err)
	}
	table.Keep(nil)
	root.write(t, "proc/40/status", "Uid:\t0\t0\t0\t0\n")
	if p, err := table.Lookup(40); err != nil || p.User != "root" {
		t.Errorf("got %+v, %v; want it read anew", p, err)
	}
}

func TestARealProcessIsDescribed(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	table := procs.NewTable(procs.Config{})
	p, err := table.Lookup(cmd.Process.Pid)
	if err != nil || p.Start == 0 || p.UID != os.Getuid() || p.User == "" {
		t.Errorf("got %+v, %v", p, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if _, err := table.Lookup(cmd.Process.Pid); !errors.Is(err, procs.ErrGone) {
		t.Errorf("after its end: %v", err)
	}
}

func BenchmarkLookup(b *testing.B) {
	table := procs.NewTable(procs.Config{})
	for b.Loop() {
		if _, err := table.Lookup(os.Getpid()); err != nil {
			b.Fatal(err)
		}
	}
}

func TestOnlyTheProcessThatIsMeantIsEnded(t *testing.T) {
	cmd := exec.Command("sleep", "900")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	table := procs.NewTable(procs.Config{})
	p, err := table.Lookup(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := table.End(p.PID, p.Start+1); !errors.Is(err, procs.ErrGone) {
		t.Errorf("one that had the number before: %v", err)
	}
	select {
	case err := <-ended:
		t.Fatalf("the wrong process ended: %v", err)
	default:
	}
	if err := table.End(p.PID, p.Start); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || err.Error() != "signal: terminated" {
		t.Errorf("it ended with %v", err)
	}
	if err := table.End(p.PID, p.Start); !errors.Is(err, procs.ErrGone) {
		t.Errorf("one that has ended: %v", err)
	}
}
