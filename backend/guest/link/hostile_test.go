package link_test

import (
	"context"
	"encoding/json"
	"io"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"slipway/backend/guest/link"
	"slipway/backend/session"
)

// nasty is what a program may call itself: it would move a terminal's cursor,
// set its title, begin new lines and turn the direction of what follows.
const nasty = "\x1b[2J\x1b]0;owned\x07\u009b31m\r\n\u202egnp.exe\u2028\x00 name"

// asked calls everything that a guest answers, and hands each text that came
// back to line and each message to lines. It fails the test for a number that
// cannot be.
func asked(t testing.TB, c *link.Client, line, lines func(string)) {
	ctx := t.Context()
	failed := func(err error) {
		if err == nil {
			return
		}
		if e := session.AsError(err, ""); e != nil {
			lines(e.Message)
			lines(e.Hint)
			if len(e.Code) > 100 || strings.ContainsAny(string(e.Code), " \n\x1b") {
				t.Errorf("a code is %q", e.Code)
			}
		}
	}
	within := func(what string, n, low, high int) {
		if n < low || n > high {
			t.Errorf("%s is %d", what, n)
		}
	}
	terminals, err := c.ListTerminals(ctx)
	failed(err)
	opened, err := c.OpenTerminal(ctx, session.TerminalRequest{})
	if failed(err); err == nil {
		terminals = append(terminals, opened)
	}
	within("the number of terminals", len(terminals), 0, 257)
	for _, one := range terminals {
		line(one.ID + one.Title + one.Kernel)
		within("a side", min(one.Cols, one.Rows), 1, 4096)
		within("a side", max(one.Cols, one.Rows), 1, 4096)
		if one.Start > one.End || one.ID == "" || strings.ContainsAny(one.ID, "./ ") {
			t.Errorf("a terminal is %+v", one)
		}
	}
	services, err := c.Services(ctx)
	failed(err)
	started, err := c.StartService(ctx, link.ServiceRequest{})
	if failed(err); err == nil {
		services = append(services, started)
	}
	within("the number of services", len(services), 0, 257)
	for _, one := range services {
		line(one.ID + one.Dir + string(one.State))
		within("a port", one.Port, 0, 65535)
		if one.Error != nil {
			lines(one.Error.Message + one.Error.Hint)
			if len(one.Error.Said)+len(one.Error.Advice) > 0 {
				t.Errorf("phrases came through: %+v", one.Error)
			}
		}
	}
	ports, err := c.Listening(ctx)
	failed(err)
	for _, port := range ports {
		within("a port", port, 1, 65535)
	}
	within("the number of ports", len(ports), 0, 4096)
	activity, err := c.Activity(ctx)
	failed(err)
	for _, one := range activity {
		line(one.Terminal + one.Program)
	}
	names := []string{"jupyter-lab"}
	found, err := c.Which(ctx, names)
	failed(err)
	for name, at := range found {
		if line(at); !slices.Contains(names, name) || !path.IsAbs(at) {
			t.Errorf("%q is at %q", name, at)
		}
	}
	host, err := c.SSHHost(ctx)
	if failed(err); err == nil {
		line(host.Key)
		within("the words of a key", len(strings.Fields(host.Key)), 2, 2)
	}
	use, err := c.SSHUse(ctx)
	failed(err)
	line(use.Program)
	askedFiles(ctx, t, c, failed)
	_ = c.Events(ctx, func(e link.Event) error {
		if e.Error != nil {
			lines(e.Error.Message + e.Error.Hint)
		}
		within("a count", e.OOM, 0, 1<<31-1)
		if e.Exit != nil {
			within("an exit code", *e.Exit, 0, 255)
		}
		return io.EOF
	})
}

func askedFiles(ctx context.Context, t testing.TB, c *link.Client, failed func(error)) {
	listing, err := c.ListFiles(ctx, session.ListRequest{})
	failed(err)
	if len(listing.Entries) > session.MaxListed || listing.Total < len(listing.Entries) && err == nil {
		t.Errorf("%d entries of %d", len(listing.Entries), listing.Total)
	}
	stat, statErr := c.StatFile(ctx, "/x")
	if failed(statErr); statErr == nil && stat.Name != "/" {
		listing.Entries = append(listing.Entries, stat)
	}
	for _, f := range listing.Entries {
		if name := string(f.Name); err == nil && (name == "" || name == "." || name == ".." || len(name) > 255 ||
			strings.ContainsAny(name, "/\x00")) {
			t.Errorf("a file is named %q", name)
		}
		if err == nil && (f.Size < 0 || f.Mode > 0o7777) {
			t.Errorf("a file is %+v", f)
		}
		if len(f.Target) > 4096 || strings.Contains(string(f.Target), "\x00") || f.Target != "" && !f.Link {
			t.Errorf("a link is %+v", f)
		}
	}
	there, err := c.UploadOffset(ctx, session.Upload{})
	if failed(err); err == nil && there < 0 {
		t.Errorf("an upload stands at %d", there)
	}
	sum, err := c.ChecksumFile(ctx, "/x")
	if failed(err); err == nil && len(sum) != 64 {
		t.Errorf("a checksum is %q", sum)
	}
}

// harmless fails for a text that does more than show itself.
func harmless(t testing.TB, also string) func(string) {
	return func(text string) {
		for _, r := range text {
			if r != '\u200d' && unicode.Is(unicode.C, r) && !strings.ContainsRune(also, r) || r == '\u2028' ||
				r == '\u2029' || r == utf8.RuneError {
				t.Errorf("%.200q holds %U", text, r)
				return
			}
		}
		if len(text) > 64<<10 {
			t.Errorf("a text has %d bytes", len(text))
		}
	}
}

// What the guest tells of its session is a stranger's work, and goes on to people.
func TestWhatTheSessionTellsIsCleaned(t *testing.T) {
	text, _ := json.Marshal(strings.Repeat(nasty, 1000))
	for _, said := range []string{
		`{"ok": [{"id": "t1", "title": ` + string(text) +
			`, "cols": -5, "rows": 99999999, "start": 9, "end": 2, "exitCode": 70000}]}`,
		`{"ok": {"id": "t1", "title": ` + string(text) + `, "kernel": ` + string(text) + `, "cols": 0}}`,
		`{"ok": {"id": "../t1", "title": "x"}}`,
		`{"ok": [{"id": ` + string(text) + `}]}`,
		`{"ok": [{"id": "app", "port": 99999999}, {"id": "other", "port": -1, "state": "?"}, {"id": "a", "port": 1, ` +
			`"dir": ` +
			string(text) + `, "error": {"code": "x y", "message": ` + string(text) + `, "hint": ` + string(text) +
			`, "said": [{"say": "engine"}]}}]}`,
		`{"ok": {"id": "a", "port": 1, "error": {"code": "app_start_exited", "message": ` + string(text) + `}}}`,
		`{"ok": [0, -1, 65536, 99999999, 80, 80]}`,
		`{"ok": [{"terminal": "t1", "program": ` + string(text) + `, "known": true}]}`,
		`{"ok": {"jupyter-lab": "bin/relative", "other": "/bin/other"}}`,
		`{"ok": {"jupyter-lab": ` + string(text) + `}}`,
		`{"ok": {"key": "ssh-ed25519 AAAA\nMatch exec \"true\"\n"}}`,
		`{"ok": {"key": ` + string(text) + `}}`,
		`{"ok": {"program": ` + string(text) + `}}`,
		`{"ok": {"path": "/home/work", "total": -3, "entries": [{"name": "../../.bashrc", "kind": "file"}, ` +
			`{"name": "..", "kind": "directory"}, {"name": "a/b", "kind": "file"}, {"name": "ok", "kind": "file", ` +
			`"size": -1}]}}`,
		`{"ok": {"path": "relative", "entries": [{"name": "x", "kind": "file"}]}}`,
		`{"ok": {"path": "/home/work", "entries": [{"name": "l", "kind": "other", "link": true, "target": ` +
			string(text) + `}, {"name": "m", "kind": "other", "link": true, "target": "a\u0000b"}, ` +
			`{"name": "f", "kind": "file", "target": "x"}]}}`,
		`{"ok": {"name": "../x", "kind": "file"}}`,
		`{"ok": -1}`, `{"ok": "zz"}`, `{"ok": ` + string(text) + `}`, `{}`, `null`, `[]`, `{"ok": null}`,
		`{"error": {"code": ` + string(text) + `, "message": ` + string(text) + `, "hint": ` + string(text) + `}}`,
	} {
		conn := answer(t, hostile(json.RawMessage(said)))
		c, err := link.Connect(t.Context(), conn)
		if err != nil {
			t.Fatal(err)
		}
		asked(t, c, harmless(t, ""), harmless(t, "\n"))
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// hostile answers the greeting as a guest does, and everything else by what was
// said, twice: as a reply, and as an event.
func hostile(said json.RawMessage) func(io.Writer) {
	greeted := false
	return func(w io.Writer) {
		if !greeted {
			greeted = true
			_ = link.ReplyOK(w, link.Hello{Version: link.Version})
			return
		}
		_ = link.WriteMessage(w, said)
		_ = link.WriteMessage(w, said)
		if closer, ok := w.(io.Closer); ok {
			_ = closer.Close()
		}
	}
}

func TestWhatIsNotKeptIsCleaned(t *testing.T) {
	said, _ := json.Marshal(slices.Repeat([]link.Unkept{{Notebook: strings.Repeat(nasty, 100), Why: nasty}}, 1000))
	list, err := link.DecodeUnkept(said)
	if err != nil || len(list) == 0 || len(list) > 256 {
		t.Fatalf("%d entries, %v", len(list), err)
	}
	harmless(t, "")(list[0].Notebook)
	if list[0].Why != link.WhyUnreachable || len([]rune(list[0].Notebook)) > 200 {
		t.Errorf("it is %+v", list[0])
	}
	if list, err := link.DecodeUnkept([]byte(`{"notebook": 1}`)); err == nil {
		t.Errorf("nonsense is %+v", list)
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"ok": [{"id": "t1", "title": "x", "cols": 80, "rows": 24}]}`))
	f.Add([]byte(`{"ok": {"key": "ssh-ed25519 AAAA"}}`))
	f.Add([]byte(`{"ok": {"path": "/", "entries": [{"name": "x", "kind": "file"}]}}`))
	f.Add([]byte(`{"error": {"code": "a_b_c", "message": "\u001b["}}`))
	f.Add([]byte(`{"exit": 7}`))
	f.Fuzz(func(t *testing.T, said []byte) {
		if !json.Valid(said) {
			return
		}
		c, err := link.Connect(t.Context(), answer(t, hostile(said)))
		if err != nil {
			t.Fatal(err)
		}
		asked(t, c, harmless(t, ""), harmless(t, "\n"))
		_ = c.Close()
	})
}
