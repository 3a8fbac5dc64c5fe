package server_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"slipway/backend/api"
)

// through asks for a path through a door as one who names it by host would.
func through(t *testing.T, port int, host, path string, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", port, path),
		http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host + ":" + strconv.Itoa(port)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// openDoor opens the notebook as asked.
func (w *world) openDoor(t *testing.T, body string) api.Door {
	t.Helper()
	var opened api.Opened
	if status := w.call(t, "POST", "/api/v1/sessions/aaaaaaaaaaaa/apps/notebook/open", body, &opened); status != 200 ||
		opened.App.Door == nil {
		t.Fatalf("opening answers %d, %+v", status, opened)
	}
	return *opened.App.Door
}

func TestPreferredPortLeadsToTheAppAndAsksForItsTicket(t *testing.T) {
	w := start(t)
	w.upstream(t)
	free, cookie := freed(t), w.enter(t)
	door := w.openDoor(t, fmt.Sprintf(`{"port":%d}`, free))
	if door.Public || door.Port != free || door.Instead || len(door.Addresses) != 1 {
		t.Fatalf("the door is %+v", door)
	}
	if status, _ := through(t, free, notebook, "/lab"); status != http.StatusForbidden {
		t.Errorf("without a ticket: %d", status)
	}
	if status, _ := through(t, free, notebook, "/lab", "Cookie", cookie); status != 200 {
		t.Errorf("with the app's cookie: %d", status)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "evil.example"} {
		if status, _ := through(t, free, host, "/lab", "Cookie", cookie); status == 200 {
			t.Errorf("by the name of %s it was opened", host)
		}
	}
	if again := w.openDoor(t, fmt.Sprintf(`{"port":%d}`, free)); again.Port != free {
		t.Errorf("opened again it is %+v", again)
	}
}

func TestTakenPortIsReplacedAndTold(t *testing.T) {
	w := start(t)
	w.upstream(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it is one
	door := w.openDoor(t, fmt.Sprintf(`{"port":%d}`, port))
	if !door.Instead || door.Port == port || door.Port == 0 {
		t.Errorf("the door is %+v", door)
	}
	for _, bad := range []int{80, 70000, -1} {
		if status := w.call(t, "POST", "/api/v1/sessions/aaaaaaaaaaaa/apps/notebook/open",
			fmt.Sprintf(`{"port":%d}`, bad), nil); status != http.StatusUnprocessableEntity {
			t.Errorf("port %d answers %d", bad, status)
		}
	}
}

func TestPublicDoorNeedsNoLoginUntilItIsClosed(t *testing.T) {
	w := start(t)
	w.upstream(t)
	door := w.openDoor(t, `{"public":true}`)
	if !door.Public || len(door.Addresses) < 1 {
		t.Fatalf("the door is %+v", door)
	}
	if status, body := through(t, door.Port, "127.0.0.1", "/lab"); status != 200 {
		t.Errorf("a stranger gets %d: %s", status, body)
	}
	if status, _ := through(t, door.Port, "evil.example", "/lab"); status == 200 {
		t.Error("a page that points its name at this computer got in")
	}
	if status, _ := through(t, door.Port, "127.0.0.1", "/api/v1/sessions"); status == 200 {
		t.Error("the API is reached through the door of an app")
	}
	var apps []api.App
	w.call(t, "GET", "/api/v1/sessions/aaaaaaaaaaaa/apps", "", &apps)
	if len(apps) == 0 || apps[0].Door == nil || !apps[0].Door.Public {
		t.Errorf("it is not told: %+v", apps)
	}
	if status := w.call(t, "DELETE", "/api/v1/sessions/aaaaaaaaaaaa/apps/notebook/door", "",
		nil); status != http.StatusNoContent {
		t.Errorf("closing answers %d", status)
	}
	if status, body := through(t, door.Port, "127.0.0.1", "/lab"); status != 0 {
		t.Errorf("once closed: %d %s", status, body)
	}
}

func TestDoorClosesWithItsSession(t *testing.T) {
	w := start(t)
	w.upstream(t)
	door := w.openDoor(t, `{"public":true}`)
	if status := w.call(t, "POST", "/api/v1/sessions/aaaaaaaaaaaa/terminate", "{}", nil); status >= 300 {
		t.Fatalf("ending the session answers %d", status)
	}
	w.until(t, "the door is closed", func() bool {
		status, said := through(t, door.Port, "127.0.0.1", "/lab")
		return status == 0 && strings.Contains(said, "refused")
	})
}

// shutDown ends the server as a person or a new version does.
func (w *world) shutDown() {
	w.shutdown()
	<-w.done
}

// next starts the server that follows one which has ended.
func (w *world) next(t *testing.T) *world {
	t.Helper()
	return startOn(t, w.agent, w.shelf)
}

func TestPreferredPortComesBackWithTheNextServer(t *testing.T) {
	w := start(t)
	w.upstream(t)
	free, cookie := freed(t), w.enter(t)
	w.openDoor(t, fmt.Sprintf(`{"port":%d}`, free))
	w.shutDown()
	if status, said := through(t, free, notebook, "/lab"); status != 0 {
		t.Errorf("without a server: %d %s", status, said)
	}

	w = w.next(t)
	if a := w.notebookApp(t); a.Door == nil || a.Door.Port != free || a.LostDoor != nil {
		t.Errorf("the app is told as %+v", a)
	}
	if status, said := through(t, free, notebook, "/lab", "Cookie", cookie); status != http.StatusOK {
		t.Errorf("with the app's cookie: %d %s", status, said)
	}
	if status, _ := through(t, free, notebook, "/lab"); status != http.StatusForbidden {
		t.Errorf("without a ticket: %d", status)
	}
	if status := w.call(t, "DELETE", "/api/v1/sessions/aaaaaaaaaaaa/apps/notebook/door", "",
		nil); status != http.StatusNoContent {
		t.Errorf("closing answers %d", status)
	}
	w.shutDown()
	if a := w.next(t).notebookApp(t); a.Door != nil || a.LostDoor != nil {
		t.Errorf("what was closed came back: %+v", a)
	}
}

func TestPublicDoorStaysShutAndIsTold(t *testing.T) {
	w := start(t)
	w.upstream(t)
	door := w.openDoor(t, `{"public":true}`)
	w.shutDown()
	for range 2 { // it is told until somebody has answered
		w = w.next(t)
		if a := w.notebookApp(t); a.Door != nil || a.LostDoor == nil ||
			*a.LostDoor != (api.LostDoor{Public: true, Port: door.Port}) {
			t.Fatalf("the app is told as %+v", a)
		}
		if status, said := through(t, door.Port, "127.0.0.1", "/lab"); status != 0 {
			t.Errorf("it is open: %d %s", status, said)
		}
		if t.Failed() {
			return
		}
		w.shutDown()
	}
	w = w.next(t)
	if again := w.openDoor(t, fmt.Sprintf(`{"public":true,"port":%d}`, door.Port)); again.Port != door.Port ||
		!again.Public {
		t.Errorf("opened again it is %+v", again)
	}
	if a := w.notebookApp(t); a.LostDoor != nil {
		t.Errorf("it is still told: %+v", a)
	}
}

func TestPortThatSomebodyElseHasNowIsTold(t *testing.T) {
	w := start(t)
	w.upstream(t)
	free := freed(t)
	w.openDoor(t, fmt.Sprintf(`{"port":%d}`, free))
	w.shutDown()
	taken, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(free)))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	w = w.next(t)
	if a := w.notebookApp(t); a.Door != nil || a.LostDoor == nil || *a.LostDoor != (api.LostDoor{Port: free}) {
		t.Errorf("the app is told as %+v", a)
	}
	if status := w.call(t, "DELETE", "/api/v1/sessions/aaaaaaaaaaaa/apps/notebook/door", "",
		nil); status != http.StatusNoContent {
		t.Errorf("dismissing answers %d", status)
	}
	if a := w.notebookApp(t); a.LostDoor != nil {
		t.Errorf("it is still told: %+v", a)
	}
}

// notebookApp is the notebook as the list of apps tells of it.
func (w *world) notebookApp(t *testing.T) api.App {
	t.Helper()
	var apps []api.App
	w.call(t, "GET", "/api/v1/sessions/aaaaaaaaaaaa/apps", "", &apps)
	for _, a := range apps {
		if a.ID == "notebook" {
			return a
		}
	}
	t.Fatalf("the notebook is not listed: %+v", apps)
	return api.App{}
}

// freed is a port that nobody listened on a moment ago. It is none that the system
// gives to connections of programs beside this one.
func freed(t *testing.T) int {
	t.Helper()
	for range 100 {
		port := 20000 + rand.IntN(12000)
		if listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			_ = listener.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}
