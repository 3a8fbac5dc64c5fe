//go:build linux

package app_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"slipway/backend/place"
)

// The desktop program as `make build` leaves it.
const desktopProgram = "../build/bin/slipway-desktop"

// The window is opened as a container or a cloud image would open it: under
// LANG=C.UTF-8, where WebKitGTK reports a language that is none.
func TestWindowLaunchesASessionAndShowsItsStatus(t *testing.T) {
	program, docker := desktopUnderTest(t)
	home := place.Home{Dir: t.TempDir()}
	env := append(cleanEnv(), "LANG=C.UTF-8", "SLIPWAY_HOME="+home.Dir, "DOCKER_HOST="+docker)
	t.Cleanup(func() { endControlPlane(t, program, env, "seen-in-window") })

	d := startWindow(t, program, env, "--engine=docker")
	t.Cleanup(d.report)
	d.waitScript("the interface to be loaded over loopback",
		`location.protocol === 'http:' && document.querySelector('nav')`)
	name := `//input[@placeholder="Random name"]`
	question := `//*[@role="dialog"]`
	row := `//*[contains(@class, "ant-table-row")][contains(., "seen-in-window")]`
	d.press(byText("New session"), name)
	d.typeInto(name, "seen-in-window")
	d.press(byText("Skip to review"), byText("Launch"))
	d.press(byText("Launch"), question)
	d.press(question+byText("Launch"), row)
	waitFor(t, "the session's row to say Running", func() bool {
		text, err := d.text(row)
		return err == nil && strings.Contains(text, "Running")
	})

	var language string
	if err := d.script("return navigator.language", &language); err != nil || language == "C" {
		t.Errorf("navigator.language is %q (%v); number formatters would throw", language, err)
	}

	var width int
	if err := d.script("return innerWidth", &width); err != nil {
		t.Fatal(err)
	}
	for _, zoom := range []int{2, 1} {
		set := exec.Command(program, "settings", "set", "zoom", fmt.Sprint(zoom*100))
		set.Env = env
		if out, err := set.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		d.waitScript(fmt.Sprintf("the page at %d00 %%", zoom), fmt.Sprintf("Math.abs(innerWidth - %d) <= 1",
			width/zoom))
	}
}

// A desktop hands a link to a start of its own: the first opens the window with
// it, the next gives it to the window that is open, and either only asks.
func TestWindowAsksAboutALink(t *testing.T) {
	program, docker := desktopUnderTest(t)
	home := place.Home{Dir: t.TempDir()}
	env := append(cleanEnv(), "LANG=C.UTF-8", "SLIPWAY_HOME="+home.Dir, "DOCKER_HOST="+docker)
	slipway := func(args ...string) string {
		cmd := exec.Command(program, args...)
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("slipway %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	t.Cleanup(func() { slipway("shutdown") })

	d := startWindow(t, program, env, "slipway://run?image=python:3.12&name=first-link")
	t.Cleanup(d.report)
	d.waitScript("the window to show its first link",
		`location.pathname === '/link' && document.body.innerText.includes('first-link')`)
	slipway("slipway://run?image=python:3.12&name=second-link")
	d.waitScript("the window to show the link that was handed to it",
		`location.pathname === '/link' && document.body.innerText.includes('second-link')`)
	file := filepath.Join(t.TempDir(), "third.slipway.yaml")
	if err := os.WriteFile(file, []byte("image: python:3.12\nname: third-link\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	slipway("file://" + file)
	d.waitScript("the window to show the recipe in a file",
		`location.pathname === '/link' && document.body.innerText.includes('third-link')`)
	d.press(byText("Cancel"), `//a[@aria-current="page"][contains(., "Sessions")]`)
	d.waitScript("the window to leave the link", `location.pathname === '/sessions'`)
	if out := slipway("ps", "--all"); strings.Contains(out, "-link") {
		t.Errorf("a link has launched something:\n%s", out)
	}
}

// desktopUnderTest returns the built program and the engine to test it on.
func desktopUnderTest(t testing.TB) (program, docker string) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a display, WebKitWebDriver and Docker; make test runs it")
	}
	docker = os.Getenv("SLIPWAY_TEST_DOCKER")
	if docker == "" {
		t.Fatal("SLIPWAY_TEST_DOCKER names no engine: run make test, or go test -short")
	}
	program, err := filepath.Abs(desktopProgram)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v: run make build first", err)
	}
	return program, docker
}

// byText is an XPath for a button or link by what it says, once it can be
// pressed: WebDriver takes a click on one that is disabled for done.
func byText(text string) string {
	return `//*[self::button or self::a][not(@disabled)][normalize-space(.)="` + text + `"]`
}

// cleanEnv is this process's environment without what decides a locale or a
// place.
func cleanEnv() []string {
	var kept []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if name != "LANG" && name != "LANGUAGE" && name != "DISPLAY" && !strings.HasPrefix(name, "LC_") &&
			!strings.HasPrefix(name, "SLIPWAY_") {
			kept = append(kept, entry)
		}
	}
	return kept
}

// endControlPlane ends the session of the test and the control plane that the
// window started detached.
func endControlPlane(t *testing.T, program string, env []string, session string) {
	for _, args := range [][]string{{"stop", "--force", "--wait", session}, {"shutdown"}} {
		cmd := exec.Command(program, args...)
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("slipway %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
