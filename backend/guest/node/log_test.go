package node_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/guest/node"
	"slipway/backend/session"
)

// line is a line of a log, or a piece of one.
func line(second int, mark, text string) string {
	return time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC).Format(node.LogTime) + " " + mark + " " + text + "\n"
}

// openLog opens the log of main1 in a folder.
func openLog(ctx context.Context, t *testing.T, dir string, opts session.LogOptions) io.ReadCloser {
	t.Helper()
	log, err := node.OpenLog(ctx, dir, "main1", opts)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestLogs(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "main1.log")
	appendTo(t, path+".1", line(1, "F", "one")+"not a line\n"+line(2, "P", "two and ")+line(3, "F", "more"))
	appendTo(t, path, line(4, "F", "three")+line(5, "F", "")+line(6, "P", "four"))
	at := func(second int) string { return fmt.Sprintf("2026-01-02T03:04:%02d.000000000Z ", second) }
	for _, want := range []struct {
		opts session.LogOptions
		text string
	}{
		{session.LogOptions{}, "one\ntwo and more\nthree\n\nfour"},
		{session.LogOptions{Tail: 3}, "two and more\nthree\n\nfour"},
		{session.LogOptions{Tail: 1}, "\nfour"},
		{session.LogOptions{Tail: 9, Timestamps: true},
			at(1) + "one\n" + at(2) + "two and more\n" + at(4) + "three\n" + at(5) + "\n" + at(6) + "four"},
	} {
		log := openLog(t.Context(), t, dir, want.opts)
		text, err := io.ReadAll(log)
		if err != nil || string(text) != want.text {
			t.Errorf("%+v: %q, %v, want %q", want.opts, text, err, want.text)
		}
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}
	text, err := io.ReadAll(openLog(t.Context(), t, t.TempDir(), session.LogOptions{Tail: 5}))
	if err != nil || len(text) != 0 {
		t.Errorf("without a log: %q, %v", text, err)
	}
}

func TestALogIsFollowedToItsEnd(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "main1.log")
	synctest.Test(t, func(t *testing.T) {
		log := openLog(t.Context(), t, dir, session.LogOptions{Follow: true})
		done := make(chan string)
		go func() {
			text, err := io.ReadAll(log)
			done <- fmt.Sprint(string(text), err)
		}()
		appendTo(t, path, line(1, "F", "one"))
		time.Sleep(10 * time.Second)
		appendTo(t, path, line(2, "F", "two")+strings.TrimSuffix(line(3, "F", "cut"), "cut\n"))
		time.Sleep(10 * time.Second)
		appendTo(t, path, "cut\n")
		if err := os.Rename(path, path+".1"); err != nil {
			t.Fatal(err)
		}
		appendTo(t, path, line(4, "F", "four"))
		time.Sleep(10 * time.Second)
		appendTo(t, path, line(5, "F", "five"))
		record := `{"code":0,"host":"n1","job":"1"}`
		if err := os.WriteFile(filepath.Join(dir, "main1.exit"), []byte(record), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := <-done; got != "one\ntwo\ncut\nfour\nfive\n<nil>" {
			t.Errorf("it was %q", got)
		}
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestFollowingEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		log := openLog(ctx, t, t.TempDir(), session.LogOptions{Follow: true})
		time.AfterFunc(time.Minute, cancel)
		if _, err := io.ReadAll(log); err != context.Canceled { //nolint:errorlint // exactly that
			t.Errorf("it ended with %v", err)
		}
	})
}
