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

func TestServicesOfThisComputerHaveItsOwnAddress(t *testing.T) {
	agent := hubtest.New("local")
	agent.Addresses = []session.ServiceAddress{{From: session.FromMachine, URL: "http://127.0.0.1:7000/v1"},
		{From: session.FromNetwork, URL: "https://lab:8443/v1"}}
	if _, err := agent.DeployService(t.Context(), session.DeployRequest{Name: "llama"}); err != nil {
		t.Fatal(err)
	}
	if got := startOn(t, agent, &hubtest.Shelf{}).address(t); got != agent.Addresses[0].URL {
		t.Errorf("it is reached at %s", got)
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

func TestAServiceIsShownAndReadAsARecipe(t *testing.T) {
	w := start(t)
	const deploy = `{"name":"llama","replicas":2,"spec":{"agent":"local","type":"inference","image":"llama-server",` +
		`"resources":{"cpu":1},"env":[{"name":"HF_TOKEN","value":"%s"}],"serving":{"port":8000,"command":["serve"]}}}`
	var made api.Service
	w.call(t, "POST", "/api/v1/services", strings.Replace(deploy, "%s", "hush", 1), &made)
	var shown api.Service
	if status := w.call(t, "GET", "/api/v1/services/llama", "", &shown); status != http.StatusOK ||
		shown.Name != "llama" || shown.Address == "" || shown.Revisions[0].Spec.Env[0].Value != session.Hidden {
		t.Errorf("%d, it is shown as %+v", status, shown)
	}
	// What is hidden is sent back as it was shown, and means what it is.
	w.call(t, "POST", "/api/v1/services", strings.Replace(deploy, "%s", session.Hidden, 1), &made)
	list, err := w.agent.ListServices(t.Context())
	if err != nil || list[len(list)-1].Revisions[0].Spec.Env[0].Value != "hush" {
		t.Errorf("a hidden value is deployed as %+v, %v", list, err)
	}
	if status := w.call(t, "POST", "/api/v1/services", strings.NewReplacer("%s", session.Hidden, "llama", "other",
		`"agent":"local",`, "").Replace(deploy), nil); status != http.StatusUnprocessableEntity {
		t.Errorf("a hidden value of another service is answered with %d", status)
	}
	if err := w.agent.RemoveService(t.Context(), "llama"); err != nil {
		t.Fatal(err)
	}
	w.call(t, "POST", "/api/v1/services", strings.Replace(deploy, "%s", "hush", 1), &made)
	var recipe api.ServiceRecipe
	w.call(t, "GET", "/api/v1/services/llama/recipe", "", &recipe)
	if strings.Contains(recipe.YAML, "hush") || !strings.Contains(recipe.YAML, "\nreplicas: 2\n") ||
		recipe.FileName != "llama.slipway.yaml" || len(recipe.Secrets) != 1 {
		t.Errorf("the recipe is %+v", recipe)
	}
	if status := w.call(t, "GET", "/api/v1/services/nobody", "", nil); status != http.StatusNotFound {
		t.Errorf("an unknown one is answered with %d", status)
	}
}
