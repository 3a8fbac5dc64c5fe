//go:build linux && !race

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"slipway/backend/api"
	"slipway/backend/engine/enginetest"
	"slipway/backend/hub"
	"slipway/backend/session"
	"slipway/gpu"
)

// usualDeaths is how often the program dies in this test. Package agent adds
// those of an agent within its own process, which take less time.
const usualDeaths = 30

// mortals is a program on the Docker of today, with a device at work, that is
// killed again and again.
type mortals struct {
	*installed
	room   *deviceRoom
	docker *http.Client
	r      *rand.Rand
	web    *http.Client
	keel   string // id of a session that runs from the first death to the last

	deaths int
	keys   int
	wishes map[string]string // ids by key of the launches that were answered
	ids    map[string]bool   // whose end was asked for and accepted
}

// What is real here: the program, its deaths, Docker, the containers and the
// accounts. What is made up: the device, of which the test knows to the
// millijoule what it used, and by whom it was used.
func TestNothingIsLostOrDoubledWhereverTheProgramIsKilled(t *testing.T) {
	docker := enginetest.RequireModernDocker(t)
	deaths, seed := usualDeaths, uint64(1)
	if text := os.Getenv("SLIPWAY_TEST_DEATHS"); text != "" {
		deaths, _ = strconv.Atoi(text)
	}
	if text := os.Getenv("SLIPWAY_TEST_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	room := newDeviceRoom(t)
	m := &mortals{installed: installBuilt(t, room.driver, docker), room: room, docker: overSocket(docker),
		r:   rand.New(rand.NewPCG(seed, 11)),
		web: &http.Client{Timeout: time.Minute}, wishes: map[string]string{}, ids: map[string]bool{}}
	m.setSail()
	for m.deaths < deaths && !t.Failed() {
		died := m.rise()
		window := time.Duration(m.r.IntN(1200)) * time.Millisecond
		if m.r.IntN(4) == 0 {
			window /= 4 // while it is still taking things up
		}
		timer := time.AfterFunc(window, func() { _ = died.cmd.Process.Kill() })
		for died.lives() {
			m.act(died)
		}
		timer.Stop()
		m.deaths++
		m.examine()
	}
	if !t.Failed() {
		m.settle()
	}
}

// setSail starts the device's work once the first sample of it was taken, so
// that everything it uses from then on must be in the books, and a session
// that outlives all deaths.
func (m *mortals) setSail() {
	p := m.rise()
	eventually(m.t, "the device is measured", func() (bool, any) {
		var boards []api.DeviceBoard
		err := m.call(http.MethodGet, "/api/v1/devices", nil, &boards)
		return err == nil && len(boards) == 1 && len(boards[0].Devices) == 1 && boards[0].Devices[0].Power != nil,
			fmt.Sprint(boards, err)
	})
	m.room.start()
	var s api.Session
	spec := session.Spec{Type: "batch", Image: m.image, Command: "exec sleep 9000", Label: "keel",
		Accelerator: gpu.Request{Shares: 400},
		Resources:   session.Resources{CPU: 1, Memory: 128 << 20}}
	if err := m.call(http.MethodPost, "/api/v1/sessions", hub.LaunchRequest{Key: "keel", Spec: spec}, &s); err != nil {
		m.t.Fatal(err)
	}
	m.keel, m.wishes["keel"] = string(s.ID), string(s.ID)
	m.room.employ([]api.Session{m.runs(string(s.ID))})
	_ = p.cmd.Process.Kill()
	<-p.ended
	m.deaths++
}

// alive is one life of the program.
type alive struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

func (a *alive) lives() bool {
	select {
	case <-a.ended:
		return false
	default:
		return true
	}
}

// rise starts the program and does not wait until it serves.
func (m *mortals) rise() *alive {
	m.t.Helper()
	var said bytes.Buffer
	cmd := exec.Command(m.path, "serve")
	cmd.Env, cmd.Stdout, cmd.Stderr = m.env, nil, &said
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	a := &alive{cmd, make(chan struct{})}
	go func() {
		defer close(a.ended)
		err := cmd.Wait()
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.Exited() {
			m.t.Errorf("serve ended by itself: %v\n%s", err, said.String())
		}
	}()
	m.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-a.ended
	})
	return a
}

// served reports whether this life of the program answers.
func (m *mortals) served(a *alive) bool {
	serving, err := m.home.Serving()
	return err == nil && serving.PID == a.cmd.Process.Pid
}

// call asks the program that serves now, over HTTP as its interface does. A
// problem that it answers is an error too.
func (m *mortals) call(method, path string, in, out any) error {
	serving, err := m.home.Serving()
	if err != nil {
		return err
	}
	token, err := m.home.Token()
	if err != nil {
		return err
	}
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(method, serving.URL+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	answer, err := m.web.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		var problem session.Error
		return errors.Join(fmt.Errorf("%s %s: %s", method, path, answer.Status),
			json.NewDecoder(answer.Body).Decode(&problem), errors.New(problem.Message))
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(answer.Body).Decode(out)
}

// act does one thing that a person may do, or waits a moment for the program.
func (m *mortals) act(a *alive) {
	if !m.served(a) {
		select {
		case <-a.ended:
		case <-time.After(2 * time.Millisecond):
		}
		return
	}
	switch m.r.IntN(8) {
	case 0, 1, 2:
		m.wish()
	case 3:
		m.end()
	case 4:
		var live []api.Session
		if m.call(http.MethodGet, "/api/v1/sessions?state=live", nil, &live) == nil && len(live) > 0 {
			priority := m.r.IntN(101)
			// refused unless it waits
			_ = m.call(http.MethodPatch, "/api/v1/sessions/"+string(live[m.r.IntN(len(live))].ID),
				api.SessionUpdate{Priority: &priority}, nil)
		}
	default:
		select {
		case <-a.ended:
		case <-time.After(time.Duration(m.r.IntN(150)) * time.Millisecond):
		}
	}
}

// wish launches a session that sleeps for a while, or asks again for an old one.
func (m *mortals) wish() {
	var live []api.Session
	if m.call(http.MethodGet, "/api/v1/sessions?state=live", nil, &live) != nil || len(live) > 8 {
		return
	}
	m.room.employ(live)
	m.keys++
	key := fmt.Sprint("wish-", m.keys)
	if m.keys > 1 && m.r.IntN(4) == 0 {
		key = fmt.Sprint("wish-", 1+m.r.IntN(m.keys))
	}
	spec := session.Spec{Type: "batch", Image: m.image, Label: key,
		Lifetime:    session.Lifetime{Timeout: session.Duration(5 * time.Second)},
		Accelerator: gpu.Request{Shares: []gpu.Share{100, 300, 600}[m.r.IntN(3)]},
		Command:     fmt.Sprintf("exec sleep %.1f", m.r.Float64()*3),
		Resources:   session.Resources{CPU: 1, Memory: 64 << 20}}
	switch m.r.IntN(6) {
	case 0:
		spec.Accelerator, spec.PendingTimeout = gpu.Request{Devices: 1},
			session.Duration(time.Second) // the keel never lets go of its part
	case 1:
		spec.Command = "exit 0"
	}
	var s api.Session
	if m.call(http.MethodPost, "/api/v1/sessions", hub.LaunchRequest{Key: key, Spec: spec}, &s) != nil {
		return // its answer was lost
	}
	if known, ok := m.wishes[key]; ok && known != string(s.ID) {
		m.t.Errorf("%s was granted as %s and %s", key, known, s.ID)
	}
	m.wishes[key] = string(s.ID)
}

func (m *mortals) end() {
	var live []api.Session
	if m.call(http.MethodGet, "/api/v1/sessions?state=live", nil, &live) != nil {
		return
	}
	m.room.employ(live)
	if len(live) == 0 {
		return
	}
	s := live[m.r.IntN(len(live))]
	if string(s.ID) != m.keel && m.call(http.MethodPost, "/api/v1/sessions/"+string(s.ID)+"/terminate",
		api.TerminateRequest{Forced: m.r.IntN(2) == 0}, nil) == nil {
		m.ids[string(s.ID)] = true
	}
}
