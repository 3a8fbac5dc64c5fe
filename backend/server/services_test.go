package server_test

import (
	"bufio"
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

// routed is an agent with a service whose router answers with the requests' paths, tokens and bodies.
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
			body, _ := io.ReadAll(req.Body) // one that breaks off shows in the answer
			_, _ = io.WriteString(far, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"+req.URL.Path+" "+
				req.Header.Get("Authorization")+string(body))
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
	// The next server has the door open before anybody asks for it.
	later := startOn(t, agent, shelf)
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

func TestTheServerChatsWithATokenOfItsOwn(t *testing.T) {
	w := startOn(t, routed(t), &hubtest.Shelf{})
	chat := func(more string) string {
		answer, body := do(t, http.DefaultClient, w.request(t, "POST", "/api/v1/services/llama/chat",
			`{"messages":[{"role":"user","content":"Hello"}]`+more+`}`))
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", answer.Status, body)
		}
		return body
	}
	got := chat("")
	if !strings.HasPrefix(got, "/services/llama/v1/chat/completions Bearer sk-") ||
		!strings.HasSuffix(got, `{"model":"llama","messages":[{"role":"user","content":"Hello"}],"stream":true,`+
			`"stream_options":{"include_usage":true}}`) {
		t.Errorf("the router is asked for %q", got)
	}
	got = chat(`,"maxTokens":9,"temperature":0,"topP":0.5,"seed":0`)
	if !strings.Contains(got, `"max_tokens":9,"temperature":0,"top_p":0.5,"seed":0,`) {
		t.Errorf("with parameters the router is asked for %q", got)
	}
}

func TestNobodyWaitsForAServiceThatOnlyAPersonStarts(t *testing.T) {
	agent := routed(t)
	w := startOn(t, agent, &hubtest.Shelf{})
	if _, err := agent.ChangeService(t.Context(), "llama", session.ServiceChange{Replicas: new(0)}); err != nil {
		t.Fatal(err)
	}
	answer, body := do(t, http.DefaultClient, w.request(t, "POST", "/api/v1/services/llama/chat",
		`{"messages":[{"role":"user","content":"Hello"}]}`))
	if answer.StatusCode != http.StatusConflict || !strings.Contains(body, "llama is stopped.") ||
		!strings.Contains(body, "serviceStoppedHint") {
		t.Errorf("%s: %s", answer.Status, body)
	}
}
