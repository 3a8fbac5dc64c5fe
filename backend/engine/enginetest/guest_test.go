package enginetest

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"slipway/backend/guest/link"
	"slipway/backend/session"
	"slipway/backend/terminal"
)

func connectGuest(t *testing.T, f *Fake, id string) *link.Client {
	t.Helper()
	conn, err := f.Guest(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	client, err := link.Connect(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() }) //nolint:errcheck // it may be broken by then
	return client
}

func TestFakeGuest(t *testing.T) {
	whole := t
	f := NewFake(FakeConfig{})
	id := newContainer(t, f, "a")
	if err := f.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	guest := f.GuestOf(id)
	guest.Programs = map[string]string{"jupyter": "/usr/bin/jupyter"}
	client := connectGuest(t, f, id)

	t.Run("which finds only what is installed", func(t *testing.T) {
		found, err := client.Which(t.Context(), []string{"jupyter", "code-server"})
		if err != nil || len(found) != 1 || found["jupyter"] != "/usr/bin/jupyter" {
			t.Errorf("got %v, %v", found, err)
		}
	})
	t.Run("a terminal keeps its output across connections", func(t *testing.T) {
		opened, err := client.OpenTerminal(t.Context(), session.TerminalRequest{Cols: 80, Rows: 24})
		if err != nil {
			t.Fatal(err)
		}
		guest.Print(opened.ID, "first ")
		f.DropGuest(id)
		<-client.Done()
		client = connectGuest(whole, f, id)
		guest.Print(opened.ID, "second ")
		stream, err := client.AttachTerminal(t.Context(), session.AttachRequest{Terminal: opened.ID, Client: "me"})
		if err != nil {
			t.Fatal(err)
		}
		var output bytes.Buffer
		viewer := terminal.NewViewer(terminal.ViewerConfig{Client: "me", Output: &output})
		if _, err := viewer.Write([]byte("exit 3\n")); err != nil {
			t.Fatal(err)
		}
		code, err := viewer.Run(t.Context(), terminal.NewConn(stream))
		if err != nil || code != 3 || output.String() != "first second exit 3\n" {
			t.Errorf("got %q, code %d, %v", output.String(), code, err)
		}
	})
	t.Run("activity is what was set, and notices are shown", func(t *testing.T) {
		opened, err := client.OpenTerminal(t.Context(), session.TerminalRequest{Cols: 80, Rows: 24})
		if err != nil {
			t.Fatal(err)
		}
		guest.SetForeground(opened.ID, "vim")
		list, err := client.Activity(t.Context())
		if err != nil || len(list) != 1 ||
			list[0] != (link.Foreground{Terminal: opened.ID, Program: "vim", Known: true}) {
			t.Errorf("got %+v, %v", list, err)
		}
		if err := client.Notice(t.Context(), "ends soon"); err != nil {
			t.Fatal(err)
		}
		if got := guest.Notices(); len(got) != 1 || got[0] != "ends soon" {
			t.Errorf("got %q", got)
		}
		terminals, err := client.ListTerminals(t.Context())
		if err != nil || terminals[len(terminals)-1].End == 0 {
			t.Errorf("nothing was shown: %+v, %v", terminals, err)
		}
	})
	t.Run("a command says what was scripted", func(t *testing.T) {
		guest.Exec = func(req session.ExecRequest) (string, string, int) {
			return strings.Join(req.Command, "+"), "trouble", 4
		}
		stream, err := client.Exec(t.Context(), session.ExecRequest{Command: []string{"a", "b"}})
		if err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		code, err := terminal.RunExec(t.Context(), terminal.NewConn(stream),
			terminal.ExecIO{Stdout: &out, Stderr: &errs})
		if err != nil || code != 4 || out.String() != "a+b" || errs.String() != "trouble" {
			t.Errorf("got %q, %q, %d, %v", out.String(), errs.String(), code, err)
		}
	})
	t.Run("events begin with what is true", func(t *testing.T) {
		code := 5
		guest.Send(link.Event{Exit: &code})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		var seen []link.Event
		err := client.Events(ctx, func(event link.Event) error {
			seen = append(seen, event)
			if len(seen) == 2 {
				cancel()
			}
			return nil
		})
		if len(seen) != 2 || !seen[0].Ready || seen[1].Exit == nil || *seen[1].Exit != 5 {
			t.Errorf("got %+v (%v), want ready and then the exit", seen, err)
		}
	})
}
