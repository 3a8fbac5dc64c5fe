//go:build linux

package app_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"slipway/backend/place"
)

// A real drag over the real window: what GTK, WebKit and Wails make of it, and what the page is told.
func TestWindowOpensADroppedFolder(t *testing.T) {
	program, docker := desktopUnderTest(t)
	home := place.Home{Dir: t.TempDir()}
	env := append(cleanEnv(), "LANG=C.UTF-8", "SLIPWAY_HOME="+home.Dir, "DOCKER_HOST="+docker)
	t.Cleanup(func() {
		end := exec.Command(program, "shutdown")
		end.Env = env
		if out, err := end.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	paper := filepath.Join(t.TempDir(), "논문 'draft'")
	file := filepath.Join(paper, "main.py")
	if err := os.Mkdir(paper, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	d := startWindow(t, program, env, "--engine=docker")
	t.Cleanup(d.report)
	source := buildDragSource(t)
	d.waitScript("the sessions", `document.querySelector('nav') && document.querySelector('h1')`)
	d.dragFrom(source, file)
	d.waitScript("what can be dropped",
		`document.body.innerText.includes('Drop a single folder to open it')`)
	d.dragFrom(source, paper)
	d.waitScript("the folder in the dialog",
		`document.querySelector('[role=dialog] input[value$="논문 \'draft\'"]')`)
	d.waitScript("the page to be there still",
		`location.protocol === 'http:' && location.pathname === '/folders'`)
}

func buildDragSource(t *testing.T) string {
	t.Helper()
	flags, err := exec.Command("pkg-config", "--cflags", "--libs", "gtk+-3.0").Output()
	if err != nil {
		t.Fatalf("pkg-config: %v", err)
	}
	source := filepath.Join(t.TempDir(), "dragsource")
	args := append([]string{"-o", source, "testdata/dragsource.c"}, strings.Fields(string(flags))...)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return source
}

// dragFrom drags a file from a window of its own to the middle of the main one, and drops it there.
func (d *driver) dragFrom(source, file string) {
	d.t.Helper()
	env := append(os.Environ(), "DISPLAY="+d.display)
	cmd := exec.Command(source, file)
	start(d.t, cmd, env)
	move := func(args ...string) bool {
		do := exec.Command("xdotool", args...)
		do.Env = env
		return do.Run() == nil
	}
	waitFor(d.t, "the window to drag from", func() bool {
		return move("search", "--onlyvisible", "--name", "drag source")
	})
	move("mousemove", "20", "20", "mousedown", "1", "mousemove", "40", "40")
	over := `document.body.innerText.includes('Drop a folder to open it as a project')`
	waitFor(d.t, "the page to take the drag", func() bool {
		var seen bool
		return move("mousemove", "600", "400", "mousemove", "610", "410") &&
			d.script("return "+over, &seen) == nil && seen
	})
	move("mouseup", "1")
	d.waitScript("the drag to end", "!"+over)
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
		d.t.Fatal(err)
	}
}
