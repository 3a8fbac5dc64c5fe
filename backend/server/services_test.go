package server_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"slipway/backend/api"
	"slipway/backend/hub/hubtest"
	"slipway/backend/session"
)

// routed is an agent with a service whose router answers with the requests' paths.
func routed(t *testing.T) *hubtest.Agent {
	t.Helper()
	agent := hubtest.New("local")
	agent.Route = func() net.Conn {
		near, far := net.Pipe()
		go func() {
			defer far.Close()
			req, err := http.ReadRequest(bufio.NewReader(far))
			if err != nil {
				return
			}
			_, _ = io.WriteString(far, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"+req.URL.Path+" "+
				req.Header.Get("Authorization"))
		}()
		return near
	}
	if _, err := agent.DeployService(t.Context(), session.DeployRequest{Name: "llama"}); err != nil {
		t.Fatal(err)
	}
	return agent
}

func (w *world) address(t *testing.T) string {
	t.Helper()
	var list []api.Service
	if w.call(t, "GET", "/api/v1/services", "", &list); len(list) != 1 {
		t.Fatalf("the services are %+v", list)
	}
	return list[0].Address
}

func fetch(t *testing.T, address string) string {
	t.Helper()
	answer, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestServicesKeepTheirAddress(t *testing.T) {
	agent, shelf := routed(t), &hubtest.Shelf{}
	w := startOn(t, agent, shelf)
	address := w.address(t)
	if got := fetch(t, address+"/models"); got != "/v1/models " {
		t.Errorf("the router is asked for %q", got)
	}
	if again := w.address(t); again != address {
		t.Errorf("%s is also at %s", address, again)
	}
	w.shutDown()
	// The next server has the door open before anybody asks for services.
	later := startOn(t, agent, shelf)
	var sessions []api.Session
	later.call(t, "GET", "/api/v1/sessions", "", &sessions) // it serves
	if got := fetch(t, address+"/models"); got != "/v1/models " {
		t.Errorf("the router is asked for %q", got)
	}
	if moved := later.address(t); moved != address {
		t.Errorf("%s is now at %s", address, moved)
	}
}

func TestAClientWaitsForAMachineThatIsNotReached(t *testing.T) {
	agent := routed(t)
	w := startOn(t, agent, &hubtest.Shelf{})
	address := w.address(t)
	agent.SetDown(true)
	told := make(chan string, 1)
	go func() { told <- fetch(t, address+"/models") }()
	select {
	case got := <-told:
		t.Errorf("it does not wait: %q", got)
	case <-time.After(300 * time.Millisecond):
	}
	agent.SetDown(false)
	if got := <-told; got != "/v1/models " {
		t.Errorf("the router is asked for %q", got)
	}
}

// halfOpen is a connection that still answers when its other end has sent everything, as one through a tunnel.
type halfOpen struct{ net.Conn }

func (halfOpen) CloseWrite() error { return nil }

func TestAClientThatHangsUpFreesTheModel(t *testing.T) {
	agent := routed(t)
	asked, left := make(chan struct{}), make(chan error)
	agent.Route = func() net.Conn {
		near, far := net.Pipe()
		go func() {
			reader := bufio.NewReader(far)
			_, err := http.ReadRequest(reader)
			close(asked)
			if err == nil {
				_, err = reader.ReadByte() // no answer
			}
			left <- err
		}()
		return halfOpen{near}
	}
	w := startOn(t, agent, &hubtest.Shelf{})
	client, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(w.address(t), "http://"), "/v1"))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(client, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
	<-asked
	_ = client.Close()
	if err := <-left; !errors.Is(err, io.EOF) {
		t.Errorf("the router sees %v", err)
	}
}

func TestTheServerChatsWithATokenOfItsOwn(t *testing.T) {
	w := startOn(t, routed(t), &hubtest.Shelf{})
	chat := func() string {
		answer, body := do(t, http.DefaultClient, w.request(t, "POST", "/api/v1/services/llama/chat",
			`{"messages":[{"role":"user","content":"Hello"}]}`))
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", answer.Status, body)
		}
		return body
	}
	if got := chat(); !strings.HasPrefix(got, "/services/llama/v1/chat/completions Bearer sk-") {
		t.Errorf("the router is asked for %q", got)
	}
}
