//go:build linux

package app_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// driver is a WebDriver session on the real window.
type driver struct {
	t       testing.TB
	address string // of WebKitWebDriver
	session string
	dir     string
	shim    string
	display string
}

// startWindow opens the desktop program under a display of its own with the
// given environment and argument and returns a driver for its main window.
// Everything it starts is ended with the test, by pid.
func startWindow(t testing.TB, program string, env []string, arg string) *driver {
	t.Helper()
	d := startDriver(t, env)
	d.open(program, arg)
	return d
}

// startDriver starts a display, and on it a driver for windows that are opened
// in the given environment.
func startDriver(t testing.TB, env []string) *driver {
	t.Helper()
	dir := t.TempDir()
	display := startDisplay(t, dir)
	env = append(env, "DISPLAY="+display)
	port := freePort(t)
	start(t, exec.Command("WebKitWebDriver", "-p", fmt.Sprint(port)), env)
	d := &driver{t: t, address: fmt.Sprintf("http://127.0.0.1:%d", port), dir: dir, shim: buildShim(t, dir),
		display: display}
	waitFor(t, "WebKitWebDriver to answer", func() bool {
		response, err := http.Get(d.address + "/status")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	return d
}

// open opens the desktop program. Only one window can be driven at a time.
func (d *driver) open(program, arg string) {
	d.t.Helper()
	wrapper := filepath.Join(d.dir, "wrapper.sh")
	script := fmt.Sprintf("#!/bin/sh\necho $$ $(date +%%s%%3N) > '%s'\nexport LD_PRELOAD=%s\nexec %s '%s'\n", d.note(),
		d.shim, program, arg)
	if err := os.WriteFile(wrapper, []byte(script), 0o700); err != nil {
		d.t.Fatal(err)
	}
	var created struct{ SessionID string }
	d.do(http.MethodPost, "/session", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{
		"webkitgtk:browserOptions": map[string]any{"binary": wrapper, "args": []string{}}}}}, &created)
	d.session = created.SessionID
}

// note is a file that holds the program's process and when it was started, in
// milliseconds.
func (d *driver) note() string { return filepath.Join(d.dir, "started") }

// process reads the note.
func (d *driver) process() (pid int, started float64) {
	d.t.Helper()
	text, err := os.ReadFile(d.note())
	if err == nil {
		_, err = fmt.Sscan(string(text), &pid, &started)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return pid, started
}

// close ends the program, and the driver's session with it.
func (d *driver) close() {
	d.t.Helper()
	pid, _ := d.process()
	// Either may have ended the other by now; that both are gone is looked for.
	_ = d.try(http.MethodDelete, "/session/"+d.session, nil, nil)
	_ = syscall.Kill(pid, syscall.SIGTERM)
	waitFor(d.t, "the window to be gone", func() bool { return syscall.Kill(pid, 0) != nil })
}

// startDisplay starts an X server on a display of its own choosing. Without -noreset it would begin anew, and refuse
// connections meanwhile, each time that its last client leaves.
func startDisplay(t testing.TB, dir string) string {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("Xvfb", "-displayfd", "3", "-screen", "0", "1400x900x24", "-nolisten", "tcp", "-noreset")
	cmd.ExtraFiles = []*os.File{write}
	cmd.Dir = dir
	start(t, cmd, os.Environ())
	write.Close()
	defer read.Close()
	// Xvfb writes the newline in a second call, and exits if the pipe is closed by then.
	number, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		t.Fatalf("Xvfb named no display: %v", err)
	}
	return ":" + strings.TrimSpace(number)
}

// start runs a program and kills its whole process group with the test.
func start(t testing.TB, cmd *exec.Cmd, env []string) {
	t.Helper()
	cmd.Env = env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v", cmd.Path, err)
	}
	t.Cleanup(func() {
		// The group may be gone already; the wait tells nothing after a kill.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(cmd.Path), output.String())
		}
	})
}

func buildShim(t testing.TB, dir string) string {
	t.Helper()
	flags, err := exec.Command("pkg-config", "--cflags", "--libs", "webkit2gtk-4.1").Output()
	if err != nil {
		t.Fatalf("pkg-config: %v", err)
	}
	shim := filepath.Join(dir, "automation.so")
	args := append([]string{"-shared", "-fPIC", "-o", shim, "testdata/automation.c"}, strings.Fields(string(flags))...)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return shim
}

// freePort is a port that nobody listens on, below those that the system gives
// away by itself, so that no test beside this one is given it meanwhile.
func freePort(t testing.TB) int {
	t.Helper()
	for {
		port := 20_000 + rand.IntN(10_000)
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		return port
	}
}

// waitFor polls a condition of another process until it holds.
func waitFor(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("waited three minutes for %s", what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// do sends one WebDriver command and decodes its value into out.
func (d *driver) do(method, path string, in, out any) {
	d.t.Helper()
	if err := d.try(method, path, in, out); err != nil {
		d.t.Fatal(err)
	}
}

func (d *driver) try(method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, d.address+path, body)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var answer struct{ Value json.RawMessage }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s", method, path, answer.Value)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer.Value, out)
}

// script runs the body of a JavaScript function in the page.
func (d *driver) script(body string, out any) error {
	return d.try(http.MethodPost, "/session/"+d.session+"/execute/sync",
		map[string]any{"script": body, "args": []any{}}, out)
}

// waitScript waits until a JavaScript expression is true.
func (d *driver) waitScript(what, expression string) {
	d.t.Helper()
	waitFor(d.t, what, func() bool {
		var holds bool
		return d.script("return Boolean("+expression+")", &holds) == nil && holds
	})
}

// press clicks the first element that an XPath finds, as a person would: it
// waits until the element is there, can be seen and takes the click, and clicks
// again when nothing has come of it for a while, since a page that is still
// being drawn may move under the pointer. leads is an XPath of what comes of it.
func (d *driver) press(path, leads string) {
	d.t.Helper()
	var pressed time.Time
	waitFor(d.t, leads+" after a click on "+path, func() bool {
		if _, err := d.find(leads); err == nil {
			return true
		}
		if time.Since(pressed) < 5*time.Second {
			return false
		}
		if element, err := d.find(path); err == nil &&
			d.try(http.MethodPost, "/session/"+d.session+"/element/"+element+"/click", map[string]any{}, nil) == nil {
			pressed = time.Now()
		}
		return false
	})
}

// typeInto types text into the first element that an XPath finds.
func (d *driver) typeInto(path, text string) {
	d.t.Helper()
	waitFor(d.t, path, func() bool {
		element, err := d.find(path)
		return err == nil && d.try(http.MethodPost, "/session/"+d.session+"/element/"+element+"/value",
			map[string]any{"text": text}, nil) == nil
	})
}

// text is what the first element that an XPath finds shows.
func (d *driver) text(path string) (string, error) {
	element, err := d.find(path)
	if err != nil {
		return "", err
	}
	var text string
	err = d.try(http.MethodGet, "/session/"+d.session+"/element/"+element+"/text", nil, &text)
	return text, err
}

func (d *driver) find(path string) (string, error) {
	const elementKey = "element-6066-11e4-a52e-4f735466cecf"
	var found map[string]string
	err := d.try(http.MethodPost, "/session/"+d.session+"/element", map[string]any{"using": "xpath", "value": path},
		&found)
	return found[elementKey], err
}

// report tells what the window shows where the test failed, and writes a
// picture of it to the file that SLIPWAY_TEST_PICTURE names, if it names one.
func (d *driver) report() {
	if d.t.Failed() {
		var page struct{ Address, Text, Focus string }
		err := d.script(
			`return {address: location.href, text: document.body.innerText, focus: `+
				`document.activeElement.outerHTML.slice(0, 300)}`, &page)
		d.t.Logf("the window is at %s (%v), its focus on %s, and says:\n%s", page.Address, err, page.Focus, page.Text)
	}
	if picture := os.Getenv("SLIPWAY_TEST_PICTURE"); picture != "" {
		d.screenshot(picture)
	}
}

// screenshot writes what the window shows to a file.
func (d *driver) screenshot(path string) {
	d.t.Helper()
	var encoded string
	d.do(http.MethodGet, "/session/"+d.session+"/screenshot", nil, &encoded)
	picture, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, picture, 0o600); err != nil {
		d.t.Fatal(err)
	}
}
