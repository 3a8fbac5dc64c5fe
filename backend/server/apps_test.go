package server_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"slipway/backend/api"
	"slipway/backend/session"
)

const notebook = "notebook-aaaaaaaaaaaa.localhost"

// upstream is an app in a session: it says what it was asked, echoes, and
// speaks WebSocket.
func (w *world) upstream(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/lab", func(out http.ResponseWriter, r *http.Request) {
		http.SetCookie(out, &http.Cookie{Name: "theirs", Value: "1", Domain: "localhost"})
		http.SetCookie(out, &http.Cookie{Name: "slipway_app", Value: "forged"})
		fmt.Fprintf(out, "host=%s origin=%s referer=%s cookie=%s query=%s", r.Host, r.Header.Get("Origin"),
			r.Header.Get("Referer"), r.Header.Get("Cookie"), r.URL.RawQuery)
	})
	mux.HandleFunc("/moved", func(out http.ResponseWriter, r *http.Request) {
		http.Redirect(out, r, "http://"+r.Host+"/lab", http.StatusFound)
	})
	mux.HandleFunc("/echo", func(out http.ResponseWriter,
		r *http.Request) {
		io.Copy(out, r.Body)
	}) //nolint:errcheck // the client tells
	mux.HandleFunc("/slow", func(out http.ResponseWriter, r *http.Request) {
		io.WriteString(out, "first") //nolint:errcheck // the client tells
		http.NewResponseController(out).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("/ws", func(out http.ResponseWriter, r *http.Request) {
		conn, err := (&websocket.Upgrader{}).Upgrade(out, r, nil) // judges the origin as notebook servers do
		if err != nil {
			return
		}
		defer conn.Close()
		for {
			kind, message, err := conn.ReadMessage()
			if err != nil || conn.WriteMessage(kind, message) != nil {
				return
			}
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	w.running("aaaaaaaaaaaa")
	w.agent.SetApps("aaaaaaaaaaaa", session.App{ID: "notebook", Title: "Notebook", Kind: "web", Path: "/lab",
		State: session.AppStopped},
		session.App{ID: "sshd", Title: "SSH", Kind: "tcp", State: session.AppStopped})
	w.agent.Dial = func(ctx context.Context, id session.ID, port int) (net.Conn, error) {
		if id != "aaaaaaaaaaaa" || port != 8888 {
			return nil, &session.Error{Code: "app_open_unavailable", Message: "Nothing listens there.",
				Hint: "Start it."}
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
	}
	return server
}

// open opens the notebook and returns the address with its ticket.
func (w *world) open(t *testing.T) string {
	t.Helper()
	var opened api.Opened
	if status := w.call(t, "POST", "/api/v1/sessions/aaaaaaaaaaaa/apps/notebook/open", "{}", &opened); status != 200 {
		t.Fatalf("open answers %d", status)
	}
	if want := "http://" + notebook + ":" + w.port + "/lab"; opened.App.URL != want ||
		!strings.HasPrefix(opened.URL, want+"?slipway_ticket=") || opened.Windowed {
		t.Fatalf("opened %+v", opened)
	}
	return opened.URL
}

// visit asks for an address of an app as a browser with these cookies would.
// Names below localhost are this computer, whatever its resolver says.
func (w *world) visit(t *testing.T, method, address string, body io.Reader, headers ...string) *http.Response {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	if parsed.Host == "" {
		parsed.Scheme, parsed.Host = "http", notebook+":"+w.port
	}
	host := parsed.Host
	parsed.Host = "127.0.0.1:" + w.port
	r, err := http.NewRequestWithContext(t.Context(), method, parsed.String(), body)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

// enter uses a ticket and returns the cookie.
func (w *world) enter(t *testing.T) string {
	t.Helper()
	response := w.visit(t, "GET", w.open(t), nil)
	cookies := response.Cookies()
	if response.StatusCode != 200 || len(cookies) != 1 {
		t.Fatalf("entering answers %d with cookies %v", response.StatusCode, cookies)
	}
	return cookies[0].Name + "=" + cookies[0].Value
}

func text(t *testing.T, response *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestJupyterOpensAtAFile(t *testing.T) {
	w := start(t)
	w.upstream(t)
	var opened api.Opened
	w.call(t, "POST", "/api/v1/sessions/aaaaaaaaaaaa/apps/notebook/open", `{"file":"a/my notes?.ipynb"}`, &opened)
	want := "http://" + notebook + ":" + w.port + "/notebooks/a/my%20notes%3F.ipynb"
	if opened.App.URL != want || !strings.HasPrefix(opened.URL, want+"?slipway_ticket=") {
		t.Errorf("opened %+v", opened)
	}
}

func TestANotebookIsCompletedBeforeAPageReadsIt(t *testing.T) {
	w := start(t)
	w.upstream(t)
	dial := w.agent.Dial
	var asked []string
	w.agent.Dial = func(ctx context.Context, id session.ID, port int) (net.Conn, error) {
		if port != session.KeeperPort(8888) {
			return dial(ctx, id, port)
		}
		ours, theirs := net.Pipe()
		go func() {
			r, err := http.ReadRequest(bufio.NewReader(theirs))
			if err != nil {
				t.Error(err)
				return
			}
			asked = append(asked, r.URL.Path+" "+r.URL.Query().Get("path"))
			io.WriteString(theirs, "HTTP/1.0 204 No Content\r\n\r\n") //nolint:errcheck // the reader has what it needs
			theirs.Close()                                            //nolint:errcheck // as above
		}()
		return ours, nil
	}
	cookie := w.enter(t)
	for _, c := range []struct{ method, path, want string }{
		{"GET", "/api/contents/a%20b/my%20notes%3F.ipynb?type=notebook", "[/write a b/my notes?.ipynb]"},
		{"GET", "/api/contents/x.ipynb?content=0", "[]"},
		{"GET", "/api/contents/x.txt", "[]"},
		{"PUT", "/api/contents/x.ipynb", "[]"},
		{"GET", "/lab/tree/x.ipynb", "[]"},
		{"GET", session.LivePath + "?path=x.ipynb", "[" + session.LivePath + " x.ipynb]"},
	} {
		asked = nil
		w.visit(t, c.method, c.path, nil, "Cookie", cookie, "Origin", "http://"+notebook+":"+w.port)
		if got := fmt.Sprint(asked); got != c.want {
			t.Errorf("before %s %s it asks %s, want %s", c.method, c.path, got, c.want)
		}
	}
}

// TestAnAddressLeadsToTheSessionThatContinues: that of an app of a session which was parked, or has moved. The page
// says so meanwhile, and then starts the app; what an open page asks for in the background does not.
func TestAnAddressLeadsToTheSessionThatContinues(t *testing.T) {
	w := start(t)
	w.upstream(t)
	cookie := w.enter(t)
	asks := []string{"Cookie", cookie, "Origin", "http://" + notebook + ":" + w.port}
	opens := []string{"Cookie", cookie, "Accept", "text/html", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest",
		"document"}
	until := func(headers []string, status int, holds string) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			response := w.visit(t, "GET", "/lab", nil, headers...)
			body := text(t, response)
			if response.StatusCode == status && strings.Contains(body, holds) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("it leads to %d %s", response.StatusCode, body)
			}
		}
	}
	w.agent.Change("aaaaaaaaaaaa", func(s *session.Session) {
		s.Status, s.Parked, s.EndImage = session.Terminated, true, &session.EndImage{State: session.WorkDone}
		s.Folders = []session.FolderMount{{Folder: "ffffffffffff", Name: "home", Target: session.Home}}
	})
	w.server.ForgetPorts()
	until(opens, http.StatusServiceUnavailable, "is stopped and kept")
	next := w.running("bbbbbbbbbbbb")
	next.From = "aaaaaaaaaaaa"
	w.agent.Put(next)
	w.agent.SetApps(next.ID, session.App{ID: "notebook", Title: "Notebook", Kind: "web", Path: "/lab", Port: 9999,
		State: session.AppStopped})
	dial := w.agent.Dial
	w.agent.Dial = func(ctx context.Context, id session.ID, port int) (net.Conn, error) {
		if id != next.ID || port != 9999 {
			return nil, session.NewError(session.CodeSessionConflict, "It has ended.", "")
		}
		return dial(ctx, "aaaaaaaaaaaa", 8888)
	}
	starts := w.agent.Starts()
	until(asks, http.StatusConflict, "is not running")
	if again := w.agent.Starts(); again != starts {
		t.Fatalf("a request of an open page started the app %d times", again-starts)
	}
	until(opens, http.StatusOK, "host=localhost:9999")
	if again := w.agent.Starts(); again != starts+1 {
		t.Errorf("opening its page started the app %d times", again-starts)
	}
	until(asks, http.StatusOK, "host=localhost:9999")
}

func TestTicketBecomesACookieAndDisappears(t *testing.T) {
	w := start(t)
	w.upstream(t)
	address := w.open(t) + "&a=b"
	response := w.visit(t, "GET", address, nil)
	body := text(t, response)
	if response.StatusCode != 200 || !strings.Contains(body, `url=/lab?a=b"`) || strings.Contains(body, "ticket") {
		t.Fatalf("%d %s", response.StatusCode, body)
	}
	header := response.Header.Get("Set-Cookie")
	if !strings.Contains(header, "HttpOnly") || !strings.Contains(header, "SameSite=Strict") ||
		strings.Contains(header, "Domain") {
		t.Errorf("cookie %q", header)
	}
	if response.Header.Get("Referrer-Policy") != "no-referrer" || response.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v may leak the ticket", response.Header)
	}
	t.Run("it works once", func(t *testing.T) {
		if again := w.visit(t, "GET", address, nil, "Accept", "text/html"); again.StatusCode != 403 ||
			len(again.Cookies()) > 0 {
			t.Errorf("the second use answers %d", again.StatusCode)
		}
	})
	t.Run("a page that is loaded again goes on by its cookie", func(t *testing.T) {
		cookie := response.Cookies()[0]
		if again := w.visit(t, "GET", address, nil, "Cookie", cookie.Name+"="+cookie.Value); again.StatusCode != 200 {
			t.Errorf("answers %d", again.StatusCode)
		}
	})
	t.Run("it opens no other app", func(t *testing.T) {
		other := strings.Replace(w.open(t), "notebook-", "port-8080-", 1)
		if response := w.visit(t, "GET", other, nil); response.StatusCode != 403 {
			t.Errorf("answers %d", response.StatusCode)
		}
	})
	t.Run("wrong ones keep no right one out", func(t *testing.T) {
		for range 20 {
			w.visit(t, "GET", "http://"+notebook+":"+w.port+"/?slipway_ticket=guess", nil)
		}
		if response := w.visit(t, "GET", w.open(t), nil); response.StatusCode != 200 {
			t.Errorf("answers %d", response.StatusCode)
		}
	})
	t.Run("it logs nobody in", func(t *testing.T) {
		parsed, err := url.Parse(w.open(t))
		if err != nil {
			t.Fatal(err)
		}
		ticket := parsed.Query().Get("slipway_ticket")
		if response, _ := do(t, http.DefaultClient,
			w.request(t, "GET", "/login?code="+ticket, "")); response.StatusCode != 403 {
			t.Errorf("answers %d", response.StatusCode)
		}
	})
}

func TestAppsCookieOpensThatAppOnly(t *testing.T) {
	w := start(t)
	w.upstream(t)
	cookie := w.enter(t)
	if response := w.visit(t, "GET", "/lab", nil, "Cookie", cookie); response.StatusCode != 200 {
		t.Fatalf("answers %d", response.StatusCode)
	}
	for name, host := range map[string]string{"another app": "http://tensorboard-aaaaaaaaaaaa.localhost:",
		"another session": "http://notebook-bbbbbbbbbbbb.localhost:"} {
		if response := w.visit(t, "GET", host+w.port+"/lab", nil, "Cookie", cookie); response.StatusCode != 403 {
			t.Errorf("%s answers %d", name, response.StatusCode)
		}
	}
	_, value, _ := strings.Cut(cookie, "=")
	r := w.request(t, "GET", "/api/v1/version", "")
	r.Header.Del("Authorization")
	r.Header.Set("Cookie", "slipway_"+w.port+"="+value)
	if response, _ := do(t, http.DefaultClient, r); response.StatusCode != 401 {
		t.Errorf("the API answers %d to an app's cookie", response.StatusCode)
	}
	if response := w.visit(t, "GET", "/lab", nil, "Authorization", "Bearer "+token); response.StatusCode != 403 {
		t.Errorf("an app answers %d to the token", response.StatusCode)
	}
}

func TestAppSeesItselfOnLocalhostAndNoneOfOurCookies(t *testing.T) {
	w := start(t)
	w.upstream(t)
	cookie := w.enter(t)
	ours := "http://" + notebook + ":" + w.port
	response := w.visit(t, "GET", "/lab?x=1", nil, "Cookie", cookie+`; theirs="a b"; slipway_7421=x`, "Origin", ours,
		"Referer", ours+"/tree")
	want := `host=localhost:8888 origin=http://localhost:8888 referer=http://localhost:8888/tree cookie=theirs="a ` +
		`b" query=x=1`
	if got := text(t, response); got != want {
		t.Errorf("the app saw\n%s\nwant\n%s", got, want)
	}
	set := response.Header.Values("Set-Cookie")
	if len(set) != 1 || !strings.HasPrefix(set[0], "theirs=1") || strings.Contains(set[0], "localhost") {
		t.Errorf("cookies %q, want the app's own for this host only", set)
	}
	if moved := w.visit(t, "GET", "/moved", nil, "Cookie", cookie); moved.Header.Get("Location") != ours+"/lab" {
		t.Errorf("redirects to %q", moved.Header.Get("Location"))
	}
}

func TestPagesOfOthersCannotUseAnApp(t *testing.T) {
	w := start(t)
	w.upstream(t)
	cookie := w.enter(t)
	for name, headers := range map[string][]string{
		"another site":  {"Origin", "https://evil.example"},
		"another app":   {"Origin", "http://port-8080-aaaaaaaaaaaa.localhost:" + w.port},
		"the interface": {"Origin", w.url},
		"a picture":     {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"},
		"a frame":       {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"},
	} {
		if response := w.visit(t, "GET", "/lab", nil,
			append(headers, "Cookie", cookie)...); response.StatusCode != 403 {
			t.Errorf("%s: answers %d", name, response.StatusCode)
		}
	}
}

func TestLargeBodiesAndStreamsPass(t *testing.T) {
	w := start(t)
	w.upstream(t)
	cookie := w.enter(t)
	large := bytes.Repeat([]byte("slipway!"), 4<<20) // 32 MiB
	if got := text(t, w.visit(t, "POST", "/echo", bytes.NewReader(large), "Cookie", cookie)); got != string(large) {
		t.Errorf("%d bytes came back, not %d", len(got), len(large))
	}
	slow := w.visit(t, "GET", "/slow", nil, "Cookie", cookie)
	first := make([]byte, 5)
	if _, err := io.ReadFull(slow.Body, first); err != nil || string(first) != "first" {
		t.Errorf("the beginning of a stream is %q, %v", first, err)
	}
}

func TestWebSocketPassesThroughTheProxy(t *testing.T) {
	w := start(t)
	w.upstream(t)
	cookie := w.enter(t)
	dialer := websocket.Dialer{NetDialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:"+w.port)
	}}
	origin := "http://" + notebook + ":" + w.port
	conn, _, err := dialer.Dial("ws://"+notebook+":"+w.port+"/ws", http.Header{"Cookie": {cookie}, "Origin": {origin}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, size := range []int{1, 1000, 1 << 20} {
		message := bytes.Repeat([]byte{'x'}, size)
		if err := conn.WriteMessage(websocket.BinaryMessage, message); err != nil {
			t.Fatal(err)
		}
		if _, got, err := conn.ReadMessage(); err != nil || !bytes.Equal(got, message) {
			t.Fatalf("%d bytes came back as %d, %v", size, len(got), err)
		}
	}
	if _, response, err := dialer.Dial("ws://"+notebook+":"+w.port+"/ws",
		http.Header{"Cookie": {cookie}, "Origin": {"http://evil.example"}}); err == nil || response.StatusCode != 403 {
		t.Errorf("another site's page got in: %v", response)
	}
	if _, response, err := dialer.Dial("ws://"+notebook+":"+w.port+"/ws",
		http.Header{"Origin": {origin}}); err == nil || response.StatusCode != 403 {
		t.Errorf("a page without the cookie got in: %v", response)
	}
}

func TestRequestWaitsForAnAppThatComesBack(t *testing.T) {
	w := start(t)
	w.upstream(t)
	cookie := w.enter(t)
	working := w.agent.Dial
	var tries atomic.Int32
	w.agent.Dial = func(ctx context.Context, id session.ID, port int) (net.Conn, error) {
		if tries.Add(1) < 4 {
			return nil, errors.New("connection refused")
		}
		return working(ctx, id, port)
	}
	if response := w.visit(t, "GET", "/lab", nil, "Cookie", cookie); response.StatusCode != 200 || tries.Load() != 4 {
		t.Errorf("answers %d after %d tries", response.StatusCode, tries.Load())
	}
}

func TestAppThatDiedIsStartedAgainAndOneThatWasStoppedIsNot(t *testing.T) {
	w := start(t)
	w.upstream(t)
	cookie := w.enter(t)
	starts := w.agent.Starts()
	app := session.App{ID: "notebook", Title: "Notebook", Kind: "web", State: session.AppFailed}
	w.agent.SetApps("aaaaaaaaaaaa", app)
	w.server.ForgetPorts()
	if response := w.visit(t, "GET", "/lab", nil, "Cookie", cookie); response.StatusCode != 200 ||
		w.agent.Starts() != starts+1 {
		t.Errorf("answers %d, started %d times", response.StatusCode, w.agent.Starts()-starts)
	}
	if status := w.call(t, "POST", "/api/v1/sessions/aaaaaaaaaaaa/apps/notebook/stop", "", nil); status != 204 {
		t.Fatalf("stop answers %d", status)
	}
	response := w.visit(t, "GET", "/lab", nil, "Cookie", cookie, "Accept", "text/html")
	if body := text(t, response); response.StatusCode != 409 || w.agent.Starts() != starts+1 ||
		!strings.Contains(body, "is not running") {
		t.Errorf("answers %d, started %d times: %s", response.StatusCode, w.agent.Starts()-starts, body)
	}
}

func TestPageExplainsWhyThereIsNothing(t *testing.T) {
	w := start(t)
	w.upstream(t)
	cookie := w.enter(t)
	ask := func() (int, string) {
		w.server.ForgetPorts()
		response := w.visit(t, "GET", "/lab", nil, "Cookie", cookie, "Accept", "text/html")
		return response.StatusCode, text(t, response)
	}
	s, err := w.agent.Get(t.Context(), "aaaaaaaaaaaa")
	if err != nil {
		t.Fatal(err)
	}
	s.Status = session.Terminating
	w.agent.Put(s)
	if status, body := ask(); status != 503 || !strings.Contains(body, "TERMINATING") ||
		!strings.Contains(body, `http-equiv="refresh"`) {
		t.Errorf("while it ends: %d %s", status, body)
	}
	s.Status, s.Reason = session.Terminated, session.ReasonOOM
	w.agent.Put(s)
	if status, body := ask(); status != 410 || !strings.Contains(body, "oom-killed") ||
		strings.Contains(body, `http-equiv="refresh"`) {
		t.Errorf("after its end: %d %s", status, body)
	}
	w.agent.Remove("aaaaaaaaaaaa")
	deadline := time.Now().Add(patience)
	for {
		status, body := ask()
		if status == 404 && strings.Contains(body, "no such session") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after its removal: %d %s", status, body)
		}
	}
	if response := w.visit(t, "GET", "/lab", nil, "Cookie", cookie); !strings.HasPrefix(
		response.Header.Get("Content-Type"), "application/json") {
		t.Errorf("a program is answered with %s", response.Header.Get("Content-Type"))
	}
}

func TestAppsOfAnotherKindHaveNoAddress(t *testing.T) {
	w := start(t)
	w.upstream(t)
	var opened api.Opened
	if status := w.call(t, "POST", "/api/v1/sessions/aaaaaaaaaaaa/apps/sshd/open", "", &opened); status != 200 ||
		opened.URL != "" || opened.App.URL != "" || opened.App.Port == 0 {
		t.Errorf("%d %+v", status, opened)
	}
	var p session.Error
	if status := w.call(t, "POST", "/api/v1/sessions/aaaaaaaaaaaa/apps/none/open", "", &p); status != 409 ||
		p.Code != "app_start_not-installed" {
		t.Errorf("%d %+v", status, p)
	}
	var apps []api.App
	if w.call(t, "GET", "/api/v1/sessions/aaaaaaaaaaaa/apps", "", &apps); len(apps) != 2 || apps[0].URL == "" ||
		strings.Contains(apps[0].URL, "ticket") {
		t.Errorf("apps %+v", apps)
	}
}

func TestDesktopShellOpensTheWindow(t *testing.T) {
	w := start(t)
	w.upstream(t)
	shell := w.dial(t, "/api/v1/events?shell=1")
	nextEvent(t, shell)
	var opened api.Opened
	if w.call(t, "POST", "/api/v1/sessions/aaaaaaaaaaaa/apps/notebook/open", `{"window":true}`,
		&opened); !opened.Windowed {
		t.Fatalf("opened %+v", opened)
	}
	for {
		if e := nextEvent(t, shell); e.Window != nil {
			if e.Window.URL != opened.URL || !strings.Contains(e.Window.Title, "Notebook") {
				t.Fatalf("window %+v", e.Window)
			}
			return
		}
	}
}
