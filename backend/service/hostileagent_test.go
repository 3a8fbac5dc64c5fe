package service

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"slipway/backend/agentrpc"
	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/hub/hubtest"
	"slipway/backend/place"
	"slipway/backend/remote"
	"slipway/backend/server"
	"slipway/backend/session"
	"slipway/backend/settings"
	"slipway/backend/sshclient"
	"slipway/tunnel"
	"slipway/tunnel/secure"
)

// hostileHost is an agent that answers every call with what a test chose, over a
// real tunnel.
type hostileHost struct {
	*tunnel.Host
	answers map[string]string // JSON, by method
	events  []string          // what whoever watches is told
}

// goodAnswers are those of a machine with nothing on it.
func goodAnswers() map[string]string {
	return map[string]string{
		"hello":   `{"version":1,"oldest":1,"methods":[],"program":"1.0.0"}`,
		"machine": machineJSON, "list": `[]`, "folders": `[]`, "images": `[]`, "devices": `{"devices":[]}`,
	}
}

const machineJSON = `{"agent":"lab","engine":"docker","version":"1.0.0","hostname":"lab","os":"linux",` +
	`"arch":"amd64","cpus":8,"memory":1073741824}`

// run accepts tunnels until ctx ends.
func (h *hostileHost) run(ctx context.Context) {
	for {
		t, err := h.Accept(ctx)
		if err != nil {
			return
		}
		go func() {
			for {
				stream, err := t.Accept()
				if err != nil {
					return
				}
				go h.answer(stream)
			}
		}()
	}
}

func (h *hostileHost) answer(stream tunnel.Stream) {
	defer stream.Close()
	head := make([]byte, 5)
	if _, err := io.ReadFull(stream, head); err != nil {
		return
	}
	body := make([]byte, binary.BigEndian.Uint32(head[1:]))
	if _, err := io.ReadFull(stream, body); err != nil {
		return
	}
	var asked struct{ Method string }
	if json.Unmarshal(body, &asked) != nil {
		return
	}
	answer, ok := h.answers[asked.Method]
	if !ok {
		answer = `{}`
	}
	_ = sayFrame(stream, 'A', answer) // the caller may have left
	if asked.Method != "watch" {
		return
	}
	for _, event := range h.events {
		_ = sayFrame(stream, 'V', event) // see above
	}
	_, _ = io.Copy(io.Discard, stream) // until the caller leaves
}

func sayFrame(to io.Writer, kind byte, body string) error {
	frame := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)))
	_, err := to.Write(append(frame, body...))
	return err
}

// pipeDialer dials carriers.
type pipeDialer func() (net.Conn, error)

func (d pipeDialer) Dial(context.Context, bool) (net.Conn, error) { return d() }

// pipes dials a host in this process.
func pipes(host *tunnel.Host) tunnel.Dialer {
	return pipeDialer(func() (net.Conn, error) {
		near, theirs := net.Pipe()
		go host.Serve(tunnel.Carrier{Conn: theirs,
			Peer: tunnel.Peer{Transport: "tls"}}) //nolint:errcheck // the near side sees it
		return tunnel.Carrier{Conn: near, Peer: tunnel.Peer{Transport: "tls"}}, nil
	})
}

// hosts connects to agents in this process by real lines and clients.
type hosts struct{ *remote.Connector }

func (hosts) Add(_ context.Context, _ *hub.Work, entry hub.Entry, _ func(string) error) (hub.Entry, error) {
	key, err := secure.NewIdentity()
	if err == nil {
		entry.Fingerprint = key.Fingerprint()
	}
	return entry, err
}

// besieged is a control plane with its own agent, an honest one of another
// machine, and one that is not.
type besieged struct {
	*hub.Hub
	t      *testing.T
	ssh    string // folder with what ssh is told
	server *httptest.Server
}

const siegeToken = "token-of-the-siege-0123456789"

func besiege(t *testing.T, h *hostileHost) *besieged {
	t.Helper()
	h.Host = tunnel.NewHost(tunnel.Config{})
	honest := hubtest.New("honest")
	honest.Put(session.Session{ID: "hhhhhhhhhhhh", Name: "honest-one", Status: session.Running,
		End: session.End{Result: session.ResultUndefined}, CreatedAt: time.Now()})
	far := tunnel.NewHost(tunnel.Config{})
	handler := agentrpc.NewHandler(agentrpc.HandlerConfig{Resolve: func(tunnel.Peer) (session.Agent,
		error) {
		return honest.Agent(), nil
	}})
	mine := hubtest.New("local")
	mine.Put(session.Session{ID: "aaaaaaaaaaaa", Name: "mine", Owner: "ada", Status: session.Running,
		CreatedAt: time.Now()})

	home := place.Home{Dir: t.TempDir()}
	inProcess := map[string]*tunnel.Host{"lab": h.Host, "honest": far}
	connector := hosts{remote.New(remote.Config{Home: home, Log: discard(),
		Dialer: func(entry hub.Entry, _ tunnel.Dialer) tunnel.Dialer { return pipes(inProcess[entry.Name]) }})}
	t.Cleanup(connector.Tidy)
	one, err := hub.Open(hub.Config{Members: []hub.Member{{Name: "local", Local: true, Agent: mine.Agent()}},
		Connector: connector, Shelf: &hubtest.Shelf{}, Owner: "ada",
		Settings: settings.New(t.TempDir(), func(string) string { return "" })})
	if err != nil {
		t.Fatal(err)
	}
	b := &besieged{Hub: one, t: t, ssh: t.TempDir()}
	ssh, err := sshclient.Open(sshclient.Config{Dir: b.ssh, Person: t.TempDir(), Program: "slipway", Home: home.Dir})
	if err != nil {
		t.Fatal(err)
	}
	b.server = httptest.NewServer(server.New(server.Config{Hub: one, Shelf: &hubtest.Shelf{}, SSH: ssh,
		Token: siegeToken, Assets: fstest.MapFS{}, Log: discard(), Shutdown: func() {}}))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { h.run(ctx) })
	running.Go(func() { handler.ServeHost(ctx, far) }) //nolint:errcheck // ends with ctx
	running.Go(func() { one.Run(ctx) })
	running.Go(func() { followSessions(ctx, one, ssh, discard()) })
	t.Cleanup(func() {
		b.server.Close()
		h.Close()
		far.Close()
		cancel()
		running.Wait()
	})
	for _, name := range []string{"honest", "lab"} {
		op, err := one.AddAgent(hub.AgentRequest{Address: "slipway://" + name, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		eventually(t.Context(), t, name+" is added", func() bool {
			now, err := one.Operation(op.ID)
			return err == nil && now.State.Ended()
		})
		eventually(t.Context(), t, "the others' sessions are known", func() bool {
			_, far := one.Keeper("hhhhhhhhhhhh")
			_, near := one.Keeper("aaaaaaaaaaaa")
			return far && near
		})
	}
	return b
}

// ask calls the API of the control plane, which must answer.
func (b *besieged) ask(method, path, body string, into any) int {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.server.URL+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+siegeToken)
	req.Header.Set("Content-Type", "application/json")
	answer, err := b.server.Client().Do(req)
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, bad := range []string{"Match exec", "\\u001b", "\x1b"} {
		if bytes.Contains(raw, []byte(bad)) && !bytes.Contains(raw, []byte("agent_reply_invalid")) {
			b.t.Errorf("%s %s tells %.300q", method, path, raw)
		}
	}
	if into != nil && answer.StatusCode < 300 {
		if err := json.Unmarshal(raw, into); err != nil {
			b.t.Errorf("%s %s: %v in %.200s", method, path, err, raw)
		}
	}
	return answer.StatusCode
}

// holds checks that the control plane lives on and nothing of the attack came through.
func (b *besieged) holds() {
	b.t.Helper()
	var sessions []api.Session
	if code := b.ask(http.MethodGet, "/api/v1/sessions", "", &sessions); code != http.StatusOK {
		b.t.Errorf("sessions are answered with %d", code)
	}
	kept := map[string]string{}
	for _, s := range sessions {
		kept[string(s.ID)] = s.Agent
	}
	if kept["aaaaaaaaaaaa"] != "local" || kept["hhhhhhhhhhhh"] != "honest" {
		b.t.Errorf("the sessions are %v", kept)
	}
	if code := b.ask(http.MethodGet, "/api/v1/sessions/honest-one", "", nil); code != http.StatusOK {
		b.t.Errorf("the honest agent's session is answered with %d", code)
	}
	err := filepath.WalkDir(b.ssh, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte("owned")) || bytes.Contains(raw, []byte("Match exec")) {
			b.t.Errorf("%s has %s", path, raw)
		}
		return err
	})
	if err != nil {
		b.t.Error(err)
	}
}

// sessionJSON is a session as an agent tells of it, with one text in place of another.
func sessionJSON(old, replacement string) string {
	const good = `{"id":"eeeeeeeeeeee","name":"evil","owner":"eve","agent":"lab","spec":{"type":"interactive",` +
		`"image":"python:3.13","resources":{"cpu":1,"memory":1073741824}},` +
		`"status":"RUNNING","result":"undefined","grants":{},"attempt":1,"kernels":[{"name":"main1",` +
		`"hostname":"main1","status":"RUNNING","grants":{}},{"name":"sub1","hostname":"sub1","status":"RUNNING",` +
		`"grants":{}}],` +
		`"createdAt":"2026-11-23T12:00:00Z","priority":10,"revision":1}`
	if old != "" && !strings.Contains(good, old) {
		panic(old)
	}
	return strings.Replace(good, old, replacement, 1)
}

func resetJSON(sessions ...string) string {
	return `{"epoch":"e","seq":1,"reset":{"machine":` + machineJSON + `,"sessions":[` + strings.Join(sessions, ",") +
		`]}}`
}

// TestHostileAgent has an agent attack a whole control plane: the hub, its API
// and what it tells ssh.
func TestHostileAgent(t *testing.T) {
	const match = `\nMatch exec \"touch /tmp/owned\"\n#`
	for name, events := range map[string][]string{
		"an id that is a command":    {resetJSON(sessionJSON("eeeeeeeeeeee", "eeeeeeeeeeee"+match))},
		"a name that is a command":   {resetJSON(sessionJSON(`"evil"`, `"evil`+match+`"`))},
		"a kernel that is a command": {resetJSON(sessionJSON(`"sub1"`, `"sub1`+match+`"`))},
		"a later event that is a command": {resetJSON(), `{"epoch":"e","seq":2,"session":` +
			sessionJSON("eeeeeeeeeeee", "eeeeeeeeeeee"+match) + `}`},
		"an id that is a path":        {resetJSON(sessionJSON("eeeeeeeeeeee", "../../../../x"))},
		"an owner that is a sequence": {resetJSON(sessionJSON(`"eve"`, `"\u001b]0;owned\u0007"`))},
		"an image that is an option":  {resetJSON(sessionJSON("python:3.13", "--privileged"))},
		"a session of this computer":  {resetJSON(sessionJSON("eeeeeeeeeeee", "aaaaaaaaaaaa"))},
		"a session of another agent": {resetJSON(), `{"epoch":"e","seq":2,"session":` +
			sessionJSON("eeeeeeeeeeee", "hhhhhhhhhhhh") + `}`},
		"the removal of another's session": {resetJSON(), `{"epoch":"e","seq":2,"removed":"aaaaaaaaaaaa"}`},
		"samples of another's session": {resetJSON(),
			`{"epoch":"e","seq":2,"usage":[{"session":"hhhhhhhhhhhh","at":"2026-11-23T12:00:00Z"}]}`},
		"a status that is none":      {resetJSON(sessionJSON("RUNNING", "PWNED"))},
		"a time that is none":        {resetJSON(sessionJSON("2026-11", "9026-11"))},
		"a number that is none":      {resetJSON(sessionJSON(`"attempt":1`, `"attempt":-5`))},
		"events that go back":        {resetJSON(), `{"epoch":"e","seq":0}`},
		"something that is not JSON": {`{"epoch":`},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hostileHost{answers: goodAnswers(), events: events}
			b := besiege(t, h)
			var lab api.Agent
			eventually(t.Context(), t, "it is shown as not trustworthy", func() bool {
				b.ask(http.MethodGet, "/api/v1/agents/lab", "", &lab)
				return lab.Untrusted != nil
			})
			if lab.Untrusted.Error.Code != "agent_reply_invalid" || strings.ContainsAny(lab.Untrusted.Error.Message,
				"\n\x1b") || lab.Untrusted.Count > 3 {
				t.Errorf("it is shown as %+v", lab.Untrusted)
			}
			b.holds()
			for _, other := range []string{"local", "honest"} {
				var a api.Agent
				if b.ask(http.MethodGet, "/api/v1/agents/"+other, "", &a); a.Untrusted != nil {
					t.Errorf("%s is shown as %+v", other, a.Untrusted)
				}
			}
		})
	}
	t.Run("bad answers to what a person asks", func(t *testing.T) {
		h := &hostileHost{answers: goodAnswers(), events: []string{resetJSON(sessionJSON("", ""))}}
		bad := `[{"id":"` + match + `","name":"\u001b[2J"}]`
		for _, method := range []string{"folders", "images", "apps", "terminals", "history", "doctor", "accounts",
			"file.list", "directories", "get", "devices", "usage"} {
			h.answers[method] = bad
		}
		b := besiege(t, h)
		for _, path := range []string{
			"/api/v1/folders?agent=lab", "/api/v1/images?agent=lab", "/api/v1/sessions/eeeeeeeeeeee",
			"/api/v1/sessions/eeeeeeeeeeee/apps", "/api/v1/sessions/eeeeeeeeeeee/terminals",
			"/api/v1/sessions/eeeeeeeeeeee/history", "/api/v1/sessions/eeeeeeeeeeee/files?path=/",
			"/api/v1/agents/lab/doctor", "/api/v1/doctor?agent=lab", "/api/v1/directories?agent=lab",
		} {
			b.ask(http.MethodGet, path, "", nil)
		}
		var lab api.Agent
		b.ask(http.MethodGet, "/api/v1/agents/lab", "", &lab)
		if lab.Untrusted == nil || lab.Untrusted.Count < 5 {
			t.Errorf("it is shown as %+v", lab.Untrusted)
		}
		b.holds()
	})
}
