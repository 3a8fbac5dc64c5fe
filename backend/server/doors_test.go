package server_test

import (
	"fmt"
	"io"
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
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", port, path), http.NoBody)
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
	if status := w.call(t, "POST", "/api/v1/sessions/aaaaaaaaaaaa/apps/notebook/open", body, &opened); status != 200 || opened.App.Door == nil {
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
		if status := w.call(t, "POST", "/api/v1/sessions/aaaaaaaaaaaa/apps/notebook/open", fmt.Sprintf(`{"port":%d}`, bad), nil); status != http.StatusUnprocessableEntity {
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
	if status := w.call(t, "DELETE", "/api/v1/sessions/aaaaaaaaaaaa/apps/notebook/door", "", nil); status != http.StatusNoContent {
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

// freed is a port that nobody listened on a moment ago.
func freed(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it is one
}
