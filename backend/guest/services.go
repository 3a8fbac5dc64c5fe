package guest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"slipway/backend/guest/keeper"
	"slipway/backend/guest/link"
	"slipway/backend/session"
	"slipway/backend/terminal"
)

const (
	defaultServiceTimeout = 30 * time.Second
	maxServices           = 64
	tailSize              = 4 << 10 // bytes of output kept to explain a failure
	tailLines             = 6
)

type service struct {
	req     link.ServiceRequest
	output  tail
	stop    context.CancelFunc // kills the process, even before it has started
	settled chan struct{}      // closed when it is ready or has failed
	ended   chan struct{}      // closed when the process has ended or was not started

	mu  sync.Mutex // guards now
	now link.Service
}

func (s *service) describe() link.Service {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// startService starts a service or joins its start, which continues without the caller, and waits until it is ready.
func (g *Guest) startService(ctx context.Context, req link.ServiceRequest) (link.Service, error) {
	if req.ID == "" || len(req.Argv) == 0 || req.Port < 1 || req.Port > 65535 {
		return link.Service{}, session.NewError(session.CodeSessionInvalid,
			"An app needs a name, a command and a port.", "Report this: the app's description is incomplete.")
	}
	if req.Timeout <= 0 {
		req.Timeout = defaultServiceTimeout
	}
	req, err := g.onSocket(req)
	if err != nil {
		return link.Service{}, err
	}
	s, fresh, err := g.enterService(req)
	if err != nil {
		return link.Service{}, err
	}
	if fresh != nil {
		go g.run(fresh, s)
	}
	select {
	case <-s.settled:
	case <-ctx.Done():
		return link.Service{}, session.NewError(session.CodeOperationTimeout,
			fmt.Sprintf("%s is still starting.", s.req.ID), "Ask again in a moment.")
	}
	described := s.describe()
	if described.Error != nil {
		return described, session.NewError(described.Error.Code, described.Error.Message, described.Error.Hint)
	}
	return described, nil
}

// onSocket is a request in the network that the container has: where others have it, too, the program listens on a
// socket.
func (g *Guest) onSocket(req link.ServiceRequest) (link.ServiceRequest, error) {
	if g.cfg.Sockets == "" {
		return req, nil
	}
	if len(req.Private) == 0 {
		return req, session.NewError(session.CodeAppUnavailable, fmt.Sprintf(
			"%s listens on a port, which other users of the node could reach in a session over several nodes.",
			path.Base(req.Argv[0])), "Open it in a session on one node.")
	}
	req.Argv = slices.Clone(req.Private)
	for i, arg := range req.Argv {
		req.Argv[i] = strings.ReplaceAll(arg, link.Socket, socketOf(g.cfg.Sockets, req.Port))
	}
	return req, nil
}

// enterService returns the service of an id if it is alive, or a new one in its place with a context for its lifetime.
func (g *Guest) enterService(req link.ServiceRequest) (s *service, fresh context.Context, err error) {
	l := &g.services
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := slices.IndexFunc(l.list, func(s *service) bool { return s.req.ID == req.ID }); at >= 0 {
		known := l.list[at]
		if state := known.describe().State; state == link.ServiceStarting || state == link.ServiceReady {
			return known, nil, nil
		}
		l.list = slices.Delete(l.list, at, at+1)
	} else if len(l.list) >= maxServices {
		return nil, nil, session.NewError(session.CodeUseTooMany,
			fmt.Sprintf("The session already has %d apps, the maximum.", maxServices), "Stop some of them.")
	}
	s = &service{req: req, settled: make(chan struct{}), ended: make(chan struct{}),
		now: link.Service{ID: req.ID, Port: req.Port, Dir: req.Dir, State: link.ServiceStarting}}
	fresh, s.stop = context.WithCancel(context.Background())
	l.list = append(l.list, s)
	return s, fresh, nil
}

// run starts a service's program and waits until it is ready, then until its end. It kills the program when ctx ends.
func (g *Guest) run(ctx context.Context, s *service) {
	defer close(s.ended)
	defer s.stop()
	starting, cancel := context.WithTimeout(ctx, s.req.Timeout)
	defer cancel()
	process, err := g.launch(starting, s)
	if err != nil {
		s.settle(link.ServiceFailed, err)
		return
	}
	defer context.AfterFunc(ctx, process.Kill)()
	go func() {
		err := awaitReady(starting, g.cfg.Processes, s.req.Port, s.req.Ready)
		if err == nil {
			s.settle(link.ServiceReady, nil)
			return
		}
		err = session.WrapError(err, session.CodeAppTimeout,
			fmt.Sprintf("%s did not answer on port %d within %g s%s", path.Base(s.req.Argv[0]), s.req.Port,
				s.req.Timeout.Seconds(), s.output.sentence()),
			"Check the session's log. If the start is slow, try again.")
		if s.settle(link.ServiceFailed, err) {
			s.stop()
		}
	}()
	g.watchService(s, process)
}

// launch checks that the program exists and its port is free, and starts it.
func (g *Guest) launch(ctx context.Context, s *service) (terminal.Process, error) {
	name := s.req.Argv[0]
	if len(g.cfg.Processes.Which([]string{name})) == 0 {
		return nil, notInstalled(name)
	}
	probe, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if conn, err := g.cfg.Processes.DialPort(probe, s.req.Port); err == nil {
		_ = conn.Close()
		return nil, session.NewError(session.CodeAppConflict,
			fmt.Sprintf("Port %d, which %s needs, is already served by another program in the session.", s.req.Port,
				path.Base(name)),
			"Stop that program in a terminal, or open the port itself from the app launcher.")
	}
	process, err := g.cfg.Processes.Start(Command{Argv: s.req.Argv, Env: s.req.Env})
	switch {
	case err == nil:
		return process, nil
	case session.CodeOf(err).Detail() == session.DetailNotFound:
		return nil, notInstalled(name)
	}
	return nil, session.AsError(err, session.CodeGuestInternal)
}

func notInstalled(name string) error {
	return session.NewError(session.CodeAppNotInstalled,
		fmt.Sprintf("%s is not installed in this image.", path.Base(name)),
		"Choose an image that has it, or install it in a terminal.")
}

// watchService collects a service's output and records its end.
func (g *Guest) watchService(s *service, process terminal.Process) {
	var outputs sync.WaitGroup
	for _, from := range [...]io.Reader{process.Stdout(), process.Stderr()} {
		if from != nil {
			outputs.Go(func() { _, _ = io.Copy(io.MultiWriter(&s.output, g.cfg.Log), from) })
		}
	}
	outputs.Wait()
	code := process.Wait()
	s.mu.Lock()
	s.now.ExitCode = &code
	wasReady := s.now.State == link.ServiceReady
	if wasReady {
		s.now.State = link.ServiceExited
	}
	s.mu.Unlock()
	if !wasReady {
		s.settle(link.ServiceFailed, session.NewError(session.CodeAppExited,
			fmt.Sprintf("%s ended with code %d before it answered%s", path.Base(s.req.Argv[0]), code,
				s.output.sentence()),
			"Check its last lines, or run the command in a terminal."))
	}
}

// settle ends the start of a service. It reports whether this call did, and not an earlier one.
func (s *service) settle(state link.ServiceState, failure error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now.State != link.ServiceStarting {
		return false
	}
	s.now.State = state
	if failure != nil {
		s.now.Error = session.CauseOf(failure, session.CodeGuestInternal)
	}
	close(s.settled)
	return true
}

func (g *Guest) stopService(ctx context.Context, id string) error {
	for _, s := range g.services.all() {
		if s.req.ID != id {
			continue
		}
		g.askLast(ctx, s)
		if err := g.endService(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// endService ends a service and forgets it.
func (g *Guest) endService(ctx context.Context, s *service) error {
	err := s.end(ctx)
	if err == nil {
		g.services.remove(s)
	}
	return err
}

// askLast lets a service do what it does before it is stopped, if it is ready. It may use other services.
func (g *Guest) askLast(ctx context.Context, s *service) {
	if s.req.Last == "" || s.describe().State != link.ServiceReady {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, link.ServiceLast)
	defer cancel()
	conn, err := g.cfg.Processes.DialPort(ctx, s.req.Port)
	if err != nil {
		return // it ended by itself
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_, _ = get(conn, s.req.Port, s.req.Last) // it is stopped whatever it answers
}

// end kills a service's program, even if it is being started, and waits for its end.
func (s *service) end(ctx context.Context) error {
	s.settle(link.ServiceFailed, session.NewError(session.CodeAppConflict,
		fmt.Sprintf("%s was stopped before it answered.", path.Base(s.req.Argv[0])), "Start it again."))
	s.stop()
	select {
	case <-s.ended:
		return nil
	case <-ctx.Done():
		return session.WrapError(ctx.Err(), session.CodeAppTimeout, fmt.Sprintf("%s did not stop in time.", s.req.ID),
			"Try again, or stop it in a terminal.")
	}
}

func (g *Guest) listServices() []link.Service {
	list := []link.Service{}
	for _, s := range g.services.all() {
		list = append(list, s.describe())
	}
	return list
}

func (g *Guest) closeServices(ctx context.Context) error {
	all := g.services.all()
	var lasts, ends sync.WaitGroup
	for _, s := range all {
		lasts.Go(func() { g.askLast(ctx, s) })
	}
	lasts.Wait()
	for _, s := range all {
		ends.Go(func() { _ = g.endService(ctx, s) })
	}
	ends.Wait()
	return ctx.Err()
}

// socketOf is the path of the socket in place of a port, in a folder for them.
func socketOf(dir string, port int) string { return path.Join(dir, strconv.Itoa(port)) }

// tail keeps the last [tailSize] bytes written to it.
type tail struct {
	mu   sync.Mutex // guards kept
	kept []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if len(t.kept) > tailSize {
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-tailSize:]...)
	}
	return len(p), nil
}

// sentence returns the last lines as the end of a sentence.
func (t *tail) sentence() string {
	t.mu.Lock()
	text := strings.TrimSpace(strings.ToValidUTF8(string(t.kept), "\uFFFD"))
	t.mu.Unlock()
	if text == "" {
		return " and printed nothing."
	}
	lines := strings.Split(text, "\n")
	return ": " + strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}

const (
	firstProbe = 20 * time.Millisecond
	slowProbe  = 50 * time.Millisecond
	probeLimit = 5 * time.Second // for one probe
	maxStatus  = 4 << 10         // bytes of a status line
)

// awaitReady waits until a port accepts connections and answers a GET of path, if any, with a status below 500.
func awaitReady(ctx context.Context, processes Processes, port int, path string) error {
	pause := firstProbe
	for {
		err := probe(ctx, processes, port, path)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, slowProbe)
		case <-ctx.Done():
			return err
		}
	}
}

func probe(ctx context.Context, processes Processes, port int, path string) error {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	conn, err := processes.DialPort(ctx, port)
	if err != nil {
		return err
	}
	defer conn.Close()
	if path == "" {
		return nil
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	status, err := get(conn, port, path)
	if err != nil {
		return err
	}
	if status >= 500 {
		return fmt.Errorf("answered with status %d", status)
	}
	return nil
}

// get makes one HTTP request and returns the status. It does not use net/http, which would double the guest's size.
func get(conn net.Conn, port int, path string) (int, error) {
	request := "GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1:" + strconv.Itoa(port) +
		"\r\nUser-Agent: slipway-guest\r\nAccept: */*\r\nConnection: close\r\n\r\n"
	if _, err := io.WriteString(conn, request); err != nil {
		return 0, err
	}
	return keeper.ReadStatus(bufio.NewReader(io.LimitReader(conn, maxStatus)))
}
