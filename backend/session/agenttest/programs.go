package agenttest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"slipway/backend/layers"
	"slipway/backend/session"
	"slipway/backend/terminal"
	"slipway/gpu"
)

type executed struct {
	stdout, stderr string
	code           int
}

// exec runs a command, again if it is lost on the way.
func (s *suite) exec(id session.ID, stdin io.ReadSeeker, command ...string) executed {
	s.Helper()
	for {
		done, err := s.execOnce(id, stdin, command)
		if err == nil {
			return done
		}
		if !s.Mortal || s.ctx.Err() != nil || session.CodeOf(err) != "" && !lost(err) {
			s.Fatalf("%v: %v", command, err)
		}
		if stdin != nil {
			if _, err := stdin.Seek(0, io.SeekStart); err != nil {
				s.Fatal(err)
			}
		}
		s.pause()
	}
}

func (s *suite) execOnce(id session.ID, stdin io.Reader, command []string) (executed, error) {
	stream, err := s.agent.Exec(s.ctx, id, session.ExecRequest{Command: command, Stdin: stdin != nil})
	if err != nil {
		return executed{}, err
	}
	var stdout, stderr bytes.Buffer
	code, err := terminal.RunExec(s.ctx, terminal.NewConn(stream), terminal.ExecIO{Stdin: stdin, Stdout: &stdout,
		Stderr: &stderr})
	return executed{stdout.String(), stderr.String(), code}, err
}

func caseExec(s *suite) {
	id := s.running()
	if got := s.exec(id, nil, "sh", "-c", "echo out; echo err >&2; exit 5"); got != (executed{"out\n", "err\n", 5}) {
		s.Errorf("it did %+v", got)
	}
	refused(s, "a program that is not there", session.DetailNotFound,
		with2(s.agent.Exec, id, session.ExecRequest{Command: []string{"no-such-program"}}))
	refused(s, "no program", session.DetailInvalid, with2(s.agent.Exec, id, session.ExecRequest{}))
}

func caseExecInput(s *suite) {
	given := strings.Repeat("what goes in comes out\n", 30_000)
	got := s.exec(s.running(), strings.NewReader(given), "cat")
	if got.stdout != given || got.code != 0 {
		s.Errorf("of %d bytes %d came back, and code %d, %q", len(given), len(got.stdout), got.code, got.stderr)
	}
}

func caseExecClose(s *suite) {
	id := s.running()
	mark := "/tmp/alive-" + suffix()
	size := func() string { return s.exec(id, nil, "sh", "-c", "cat "+mark+" 2>/dev/null | wc -c").stdout }
	// quiet reports whether the command shows no sign of life for four times as long as it needs to.
	quiet := func() bool {
		before := size()
		time.Sleep(400 * time.Millisecond)
		return size() == before
	}
	begin := func() io.Closer {
		return must(s, with2(s.agent.Exec, id, session.ExecRequest{Command: []string{"sh", "-c",
			"while true; do echo x >> " + mark + "; sleep 0.1; done"}}))
	}
	stream := begin()
	for s.ctx.Err() == nil && quiet() {
		stream.Close() // the loss of its stream has ended it, or it has not begun yet
		stream = begin()
	}
	stream.Close()
	for s.ctx.Err() == nil {
		if quiet() {
			return
		}
	}
	s.Error("the command goes on")
}

func caseApps(s *suite) {
	id := s.running()
	for _, app := range must(s, with(s.agent.ListApps, id)) {
		if app.ID == "" || app.Title == "" || app.State == "" {
			s.Errorf("an app is %+v", app)
		}
	}
	refused(s, "an app that nobody knows", session.DetailNotFound,
		with2(s.agent.StartApp, id, session.AppRequest{App: "no-such-app"}))
	s.do(func(ctx context.Context) error { return s.agent.StopApp(ctx, id, "notebook") })
}

func casePort(s *suite) {
	id := s.running()
	refused(s, "a port where nothing listens", session.CodeAppTimeout, with2(s.agent.DialPort, id, 1))
	refused(s, "a port that does not exist", session.CodeSessionInvalid, with2(s.agent.DialPort, id, 70000))
	shell := s.view(id, s.openTerminal(id), "server", 0)
	// 1 MiB fits into no buffer on the way.
	fmt.Fprintf(shell,
		"mkdir -p www && cd www && head -c 1048576 /dev/zero > big && echo hello > small && echo is-\"there\" && %s\n",
		s.Server) //nolint:errcheck // await sees it
	shell.await(s, "is-there")
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return s.agent.DialPort(ctx, id, ServerPort)
	}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	for path, want := range map[string]int{"small": 6, "big": 1 << 20} {
		if got := s.fetch(client, path); got != want {
			s.Errorf("%s has %d bytes, want %d", path, got, want)
		}
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if got := s.fetch(client, "small"); got != 6 {
				s.Errorf("small has %d bytes", got)
			}
		})
	}
	all.Wait()
}

// fetch reads a page of the session's server, again while it does not listen yet or the way is lost.
func (s *suite) fetch(client *http.Client, path string) int {
	for s.ctx.Err() == nil {
		n, err := s.fetchOnce(client, path)
		if err == nil {
			return n
		}
		if !s.Mortal && session.CodeOf(err) != session.CodeAppTimeout {
			s.Errorf("%s: %v", path, err)
			return -1
		}
		s.pause()
	}
	return -1
}

func (s *suite) fetchOnce(client *http.Client, path string) (int, error) {
	req, err := http.NewRequestWithContext(s.ctx, http.MethodGet, "http://session/"+path, http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return len(body), err
}

// caseTransfer sends an image to the machine that has it: only its configuration travels.
func caseTransfer(s *suite) {
	parts := must(s, with(s.agent.DescribeImage, s.Image))
	err := layers.Carry(s.ctx, s.agent, s.agent, parts, layers.Report{
		Progress: func(_, _ gpu.Bytes) {},
		Again: func(_ context.Context, err error) error {
			if code := session.CodeOf(err); !s.Mortal || code != "" && code != session.CodeImageReplaced && !lost(err) {
				return err
			}
			s.pause()
			return nil
		},
	})
	s.ok(err)
	image := must(s, with(s.agent.InstallImage, parts.ID))
	if image.ID != parts.ID {
		s.Errorf("the image put together is %s and should be %s", image.ID, parts.ID)
	}
	must(s, func(ctx context.Context) (bool, error) { return true, s.agent.ForgetImage(ctx, parts.ID) })
	refused(s, "an image without an id", session.CodeImageInvalid,
		with(s.agent.ExpectImage, session.ImageParts{ID: "example"}))
}

func caseDevices(s *suite) {
	board := must(s, s.agent.Devices)
	if board.Source == "" || board.At.IsZero() && len(board.Devices) > 0 {
		s.Errorf("the board is %+v", board)
	}
	for _, d := range board.Devices {
		must(s, with2(s.agent.DeviceHistory, d.Device.UUID, time.Now().Add(-time.Hour)))
	}
	now := time.Now()
	span := session.AccountSpan{From: now.Add(-time.Hour), To: now.Add(time.Minute)}
	for _, a := range must(s, with(s.agent.Accounts, span)) {
		if a.Kind == "" {
			s.Errorf("an account is %+v", a)
		}
	}
}

func caseHost(s *suite) {
	checks := must(s, s.agent.Doctor)
	for _, c := range checks {
		if c.ID == "" || c.Title == "" || c.Text == "" || c.Result == session.CheckFailed && c.Remedy == "" {
			s.Errorf("a check is %+v", c)
		}
	}
	if len(checks) == 0 {
		s.Error("nothing was checked")
	}
	root := must(s, with(s.agent.ListDirectories, "/"))
	if root.Path != "/" || root.Parent != "" || len(root.Entries) == 0 {
		s.Errorf("the root is %+v", root)
	}
	for path, code := range map[string]session.Code{"relative": session.CodeFileInvalid,
		"/no/such/directory": session.CodeFileNotFound} {
		refused(s, path, code, with(s.agent.ListDirectories, path))
	}
}

// anyKey is a public key without a known private one.
const anyKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA4dFxhTNkEG3nLkFj5bCFKbFFu7MFnbFbIPb4GZ2Cw0"

func caseSSH(s *suite) {
	id := s.running()
	host := func() session.SSHHost { return must(s, with2(s.agent.SSHHost, id, "")) }
	if first, second := host(), host(); first != second || !strings.HasPrefix(first.Key, "ssh-") {
		s.Errorf("a kernel is known by %+v, then by %+v", first, second)
	}
	for _, bulk := range []bool{false, true} {
		s.greeting(id, session.SSHRequest{Key: anyKey, Bulk: bulk})
	}
	refused(s, "a kernel that is not there", session.DetailNotFound, with2(s.agent.SSHHost, id, "sub7"))

	closed := s.launch(session.Spec{Access: session.Access{NoSSH: true}})
	s.awaitStatus(closed.ID, session.Running)
	refused(s, "a session that was launched without ssh", session.CodeSessionConflict,
		with2(s.agent.DialSSH, closed.ID, session.SSHRequest{Key: anyKey}))
	s.terminate(closed.ID, true)
}

// greeting waits until an ssh server greets, which it does first, connecting again if that is lost.
func (s *suite) greeting(id session.ID, req session.SSHRequest) {
	s.Helper()
	for s.ctx.Err() == nil {
		conn := must(s, with2(s.agent.DialSSH, id, req))
		line, err := bufio.NewReader(conn).ReadString('\n')
		conn.Close() //nolint:errcheck // it was only tried
		switch {
		case err == nil && strings.HasPrefix(line, "SSH-2.0-"):
			return
		case err == nil || !s.Mortal:
			s.Errorf("a kernel greets with %q, %v", line, err)
			return
		}
		s.pause()
	}
	s.Error("no kernel greets")
}
