//go:build linux

package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"slipway/backend/api"
	"slipway/backend/client"
	"slipway/backend/hub"
	"slipway/backend/place"
	"slipway/backend/session"
)

const notebookImage = "slipway-test/notebook:1"

// mainWindow matches the title of the main window, which names its view first.
const mainWindow = "(^|· )Slipway$"

func TestDesktopShell(t *testing.T) {
	d := openDesktop(t)
	d.slipway("run", "--image", notebookImage, "--name", "with-notebook", "--mem", "512m", "-d")
	waitFor(t, "the session to run", func() bool { return strings.Contains(d.slipway("ps"), "RUNNING") })

	t.Run("an app opens in a window of its own whose title follows the page", func(t *testing.T) {
		var opened api.Opened
		d.call(http.MethodPost, "/api/v1/sessions/with-notebook/apps/notebook/open", api.OpenRequest{Window: true},
			&opened)
		if !opened.Windowed {
			t.Fatalf("the control plane did not hand the window to the shell: %+v", opened)
		}
		d.waitWindow("Home Page - Select or create a notebook")
		list, err := exec.Command("ps", "-eo", "args").Output()
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(list, []byte("slipway_ticket")) {
			t.Error("the list of processes shows a ticket")
		}
	})

	t.Run("a second start shows the window that is open and ends", func(t *testing.T) {
		d.slipway("--engine", "docker")
		if n := len(d.windows(mainWindow)); n != 1 {
			t.Errorf("%d main windows are open", n)
		}
	})

	t.Run("closing with live sessions asks once, keeps the control plane and remembers", func(t *testing.T) {
		d.x("wmctrl", "-r", "Slipway", "-e", "0,120,90,1010,720")
		waitFor(t, "the window to have moved", func() bool { return d.size(mainWindow).width == 1010 })
		d.x("wmctrl", "-c", "Slipway")
		d.waitWindow("Keep Slipway running?")
		waitFor(t, "the answer to be taken and the main window to be gone", func() bool {
			d.clickAt("Keep Slipway running", 0.75, 0.9) // Yes
			return len(d.windows(mainWindow)) == 0
		})
		var settings hub.Settings
		d.call(http.MethodGet, "/api/v1/settings", nil, &settings)
		if settings.CloseKeeps != "keep" {
			t.Errorf("the answer is remembered as %q", settings.CloseKeeps)
		}
		waitFor(t, "the app window to end with its shell", func() bool { return len(d.windows("Home Page")) == 0 })
		if out := d.slipway("ps"); !strings.Contains(out, "RUNNING") {
			t.Errorf("the session did not go on:\n%s", out)
		}
	})

	t.Run("the window comes back where it stood", func(t *testing.T) {
		d.open()
		waitFor(t, "the window to have its size again", func() bool { return d.size(mainWindow).width == 1010 })
	})
}

// desktop is the program under a display and a window manager of its own.
type desktop struct {
	t       *testing.T
	home    place.Home
	env     []string
	program string
}

func openDesktop(t *testing.T) *desktop {
	t.Helper()
	program, docker := desktopUnderTest(t)
	d := &desktop{t: t, home: place.Home{Dir: t.TempDir()}, program: program}
	d.env = append(cleanEnv(), "LANG=C.UTF-8", "SLIPWAY_HOME="+d.home.Dir, "DOCKER_HOST="+docker,
		"DISPLAY="+startDisplay(t, t.TempDir()))
	t.Cleanup(func() { endControlPlane(t, program, d.env, "with-notebook") })
	start(t, exec.Command("openbox"), d.env)
	waitFor(t, "the window manager", func() bool {
		cmd := exec.Command("wmctrl", "-m")
		cmd.Env = d.env
		return cmd.Run() == nil
	})
	d.open()
	return d
}

// open starts the program and waits for its window.
func (d *desktop) open() {
	d.t.Helper()
	start(d.t, exec.Command(d.program, "--engine", "docker"), d.env)
	d.waitWindow(mainWindow)
}

// slipway runs the program as a command and returns what it printed.
func (d *desktop) slipway(args ...string) string {
	d.t.Helper()
	return d.x(d.program, args...)
}

// x runs any program on the desktop's display.
func (d *desktop) x(name string, args ...string) string {
	d.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = d.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// windows returns the visible windows whose title matches.
func (d *desktop) windows(title string) []string {
	cmd := exec.Command("xdotool", "search", "--onlyvisible", "--name", title)
	cmd.Env = d.env
	out, err := cmd.Output()
	if err != nil {
		return nil // xdotool fails where it finds none
	}
	return strings.Fields(string(out))
}

func (d *desktop) waitWindow(title string) {
	d.t.Helper()
	waitFor(d.t, "a window named "+title, func() bool { return len(d.windows(title)) > 0 })
}

// geometry is where a window is on the screen, in pixels.
type geometry struct{ left, top, width, height, screen int }

// size returns where the first window with a title is; nothing where none is.
func (d *desktop) size(title string) geometry {
	ids := d.windows(title)
	if len(ids) == 0 {
		return geometry{}
	}
	cmd := exec.Command("xdotool", "getwindowgeometry", "--shell", ids[0])
	cmd.Env = d.env
	out, err := cmd.Output()
	if err != nil {
		return geometry{} // it was closed meanwhile
	}
	var g geometry
	shape := "WINDOW=" + ids[0] + "\nX=%d\nY=%d\nWIDTH=%d\nHEIGHT=%d\nSCREEN=%d"
	if _, err := fmt.Sscanf(string(out), shape, &g.left, &g.top, &g.width, &g.height, &g.screen); err != nil {
		d.t.Fatal(err)
	}
	return g
}

// clickAt clicks into a window, if it is there, at a place given as parts of
// its width and height: GTK's own dialogs are no page that WebDriver could reach.
func (d *desktop) clickAt(title string, x, y float64) {
	d.t.Helper()
	ids, g := d.windows(title), d.size(title)
	if len(ids) == 0 || g.width == 0 {
		return
	}
	cmd := exec.Command("xdotool", "mousemove", "--window", ids[0], fmt.Sprint(int(x*float64(g.width))),
		fmt.Sprint(int(y*float64(g.height))), "click", "1")
	cmd.Env = d.env
	_ = cmd.Run() // it fails where the window was closed meanwhile
}

// call speaks to the control plane as the shell does.
func (d *desktop) call(method, path string, in, out any) {
	d.t.Helper()
	connection, err := client.Connect(context.Background(), d.home)
	if err != nil {
		d.t.Fatal(err)
	}
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			d.t.Fatal(err)
		}
	}
	request, err := http.NewRequest(method, connection.URL+path, &body)
	if err != nil {
		d.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+connection.Token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		d.t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		var problem session.Error
		err := json.NewDecoder(response.Body).Decode(&problem)
		d.t.Fatalf("%s %s: %s %+v (%v)", method, path, response.Status, problem, err)
	}
	if err := json.NewDecoder(response.Body).Decode(out); err != nil {
		d.t.Fatal(err)
	}
}
