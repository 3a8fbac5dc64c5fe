package apps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"slipway/backend/guest/link"
	"slipway/backend/session"
)

func (c *container) Dial(_ context.Context, port int) (net.Conn, error) {
	if c.keeper == "" {
		return nil, errors.New("nothing listens")
	}
	near, far := net.Pipe()
	go func() {
		defer far.Close() //nolint:errcheck // only for the test
		buffer := make([]byte, 1024)
		n, _ := far.Read(buffer)
		switch asked := fmt.Sprint(port, " ", string(buffer[:n])); asked {
		case "7420 GET /unkept HTTP/1.0\r\n\r\n", "7420 GET /write HTTP/1.0\r\n\r\n":
			io.WriteString(far, c.keeper) //nolint:errcheck // its reader may have had enough
		}
	}()
	return near, nil
}

func TestWhetherOutputIsKeptIsAsked(t *testing.T) {
	const ok = "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"
	unkept := func(why string, notebooks ...string) string {
		return `{"notebook":"` + strings.Join(notebooks, `","why":"`+why+`"},{"notebook":"`) + `","why":"` + why + `"}`
	}
	ready := []link.Service{{ID: "jupyterlab-keeper", State: link.ServiceReady}}
	ended := []link.Service{{ID: "jupyterlab-keeper", State: link.ServiceExited}}
	for name, c := range map[string]struct {
		services []link.Service
		answer   string
		kept     bool
		says     string
	}{
		"by nothing":            {nil, ok + "[]", false, ""},
		"by what has ended":     {ended, ok + "[]", false, ""},
		"by what does not hear": {ready, "", false, ""},
		"by an old keeper":      {ready, "HTTP/1.0 204 No Content\r\n\r\n", false, ""},
		"by another program":    {ready, "SSH-2.0-x\r\n", false, ""},
		"in another way":        {ready, ok + `{"a":1}`, false, ""},
		"for ever":              {ready, ok + "[" + strings.Repeat(" ", maxUnkept) + "]", false, ""},
		"and all is":            {ready, ok + "[]", true, ""},
		"and one is not": {ready, ok + "[" + unkept("encrypted", "a.ipynb") + "]", true, "Output of a.ipynb is not " +
			"kept while no page is open: the kernel encrypts its messages."},
		"and many are not": {ready, ok + "[" + unkept("unreadable", "a", "c", "d", "e") + "," +
			unkept("news", `b\u202e\u001b[2J`) + "]", true,
			"Output of a, c, d, 1 more is not kept while no page is open: the connection file of the kernel cannot " +
				"be used. Output of b[2J is not kept while no page is open: the kernel does not answer."},
	} {
		app := session.App{ID: "jupyterlab", Port: 7430, State: session.AppReady}
		app = withKept(t.Context(), &container{keeper: c.answer}, app, c.services)
		if says := strings.TrimSpace(session.Reader{}.Read(app.NotKept...)); app.Kept != c.kept || says != c.says {
			t.Errorf("%s: %t, %q", name, app.Kept, says)
		}
	}
	stopped := session.App{ID: "jupyterlab", Port: 7430, State: session.AppStopped}
	if withKept(t.Context(), &container{keeper: ok + "[]"}, stopped, ready).Kept {
		t.Error("the keeper of a server that does not run is asked")
	}
}

func TestKeptOutputIsWrittenWhenAsked(t *testing.T) {
	for name, c := range map[string]struct {
		state  link.ServiceState
		answer string
		wrong  bool
	}{
		"and it is":                {link.ServiceReady, "HTTP/1.0 204 No Content\r\n\r\n", false},
		"but the keeper cannot":    {link.ServiceReady, "HTTP/1.0 500 Internal Server Error\r\n\r\n", true},
		"but nothing answers":      {link.ServiceReady, "", true},
		"and nothing keeps output": {link.ServiceExited, "", false},
	} {
		kept := &container{keeper: c.answer, runs: []link.Service{{ID: "jupyterlab-keeper", State: c.state}}}
		err := writeKept(t.Context(), kept)
		if (err != nil) != c.wrong {
			t.Errorf("%s: %v", name, err)
		}
	}
}
