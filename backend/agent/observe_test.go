package agent

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"

	"slipway/backend/agent/guests"
	"slipway/backend/guest/link"
	"slipway/backend/session"
)

func (g *scriptedGuest) Activity(context.Context) ([]link.Foreground, error) { return nil, g.alive() }
func (g *scriptedGuest) Notice(context.Context, string) error                { return g.alive() }

// scene is what goes on in every container of a test, however often its guest
// connects.
type scene struct {
	mu         sync.Mutex // guards everything below
	foreground []link.Foreground
	notices    []string
	services   []link.Service
	serve      func(net.Conn) // answers on every port; nil: nobody does
}

// link makes guests that show what goes on scene.
func (in *scene) link(_ context.Context, conn net.Conn) (guests.Client, error) {
	return guests.ClientOf(&sceneGuest{scriptedGuest: newScriptedGuest(conn), in: in}), nil
}

// told returns the notices so far.
func (in *scene) told() []string {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.notices)
}

// runs sets what has the terminal: nothing, a program, or "?".
func (in *scene) runs(program string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.foreground = []link.Foreground{{Terminal: "t1", Program: program, Known: program != "?"}}
}

// serves sets a service that runs and what answers on its port.
func (in *scene) serves(id string, port int, serve func(net.Conn)) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.services, in.serve = []link.Service{{ID: id, Port: port, State: link.ServiceReady}}, serve
}

type sceneGuest struct {
	*scriptedGuest
	in *scene
}

func (g *sceneGuest) Activity(context.Context) ([]link.Foreground, error) {
	g.in.mu.Lock()
	defer g.in.mu.Unlock()
	return slices.Clone(g.in.foreground), g.alive()
}

func (g *sceneGuest) Notice(_ context.Context, text string) error {
	g.in.mu.Lock()
	defer g.in.mu.Unlock()
	g.in.notices = append(g.in.notices, text)
	return g.alive()
}

func (g *sceneGuest) Services(context.Context) ([]link.Service, error) {
	g.in.mu.Lock()
	defer g.in.mu.Unlock()
	return slices.Clone(g.in.services), g.alive()
}

// ReadFile answers for any file.
func (g *sceneGuest) ReadFile(context.Context, session.ReadRequest) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("content")), g.alive()
}

// WriteUpload takes any file.
func (g *sceneGuest) WriteUpload(_ context.Context, _ session.Upload, from io.Reader) (int64, error) {
	n, err := io.Copy(io.Discard, from)
	return n, errors.Join(err, g.alive())
}

func (g *sceneGuest) Dial(context.Context, int) (net.Conn, error) {
	g.in.mu.Lock()
	defer g.in.mu.Unlock()
	if g.in.serve == nil {
		return nil, &session.Error{Code: "app_start_timeout", Message: "Nothing listens there."}
	}
	near, far := net.Pipe()
	go g.in.serve(far)
	return near, nil
}
