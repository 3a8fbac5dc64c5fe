//go:build linux

package guest_test

import (
	"io"
	"slices"
	"testing"
	"time"

	"slipway/backend/guest/link"
	"slipway/backend/session"
	"slipway/backend/terminal"
)

// BenchmarkStart measures from the start of a container's process to the
// first byte of a shell's prompt.
func BenchmarkStart(b *testing.B) {
	var hello, prompt []time.Duration
	for b.Loop() {
		box := newBox(b, true).start()
		client := box.connect()
		hello = append(hello, time.Since(box.started))
		open(b, client, session.TerminalRequest{Cols: 80, Rows: 24}).expect("$")
		prompt = append(prompt, time.Since(box.started))
	}
	report(b, hello, "hello")
	report(b, prompt, "prompt")
}

// BenchmarkEcho measures one key stroke from a viewer through link, guest and
// terminal and back.
func BenchmarkEcho(b *testing.B) {
	client := newBox(b, true).start().connect()
	stream, err := client.OpenTerminal(b.Context(),
		session.TerminalRequest{Command: []string{"sh", "-c", "stty raw; echo ready; exec cat"}, Cols: 80, Rows: 24})
	must(b, err)
	conn, keys, shown := rawAttach(b, client, stream.ID)
	defer conn.Close()
	waitShown(b, shown, "ready\n")
	var took []time.Duration
	for b.Loop() {
		begun := time.Now()
		_, err := keys.Write([]byte("x"))
		must(b, err)
		<-shown
		took = append(took, time.Since(begun))
	}
	report(b, took, "echo")
}

// rawAttach looks at a terminal and hands every piece of output on.
func rawAttach(b *testing.B, client *link.Client, id string) (io.Closer, *terminal.Viewer, <-chan []byte) {
	b.Helper()
	stream, err := client.AttachTerminal(b.Context(), session.AttachRequest{Terminal: id, Client: "bench"})
	must(b, err)
	shown := make(chan []byte, 1)
	viewer := terminal.NewViewer(terminal.ViewerConfig{Client: "bench", Output: writerFunc(func(p []byte) (int, error) {
		shown <- slices.Clone(p)
		return len(p), nil
	})})
	go func() { _, _ = viewer.Run(b.Context(), terminal.NewConn(stream)) }()
	return stream, viewer, shown
}

func waitShown(b *testing.B, shown <-chan []byte, end string) {
	b.Helper()
	for text := ""; len(text) < len(end) || text[len(text)-len(end):] != end; {
		text += string(<-shown)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// BenchmarkOutput measures 10 MB of output from a program to a viewer.
func BenchmarkOutput(b *testing.B) {
	client := newBox(b, true).start().connect()
	const size = 10_000_000
	b.SetBytes(size)
	for b.Loop() {
		opened, err := client.OpenTerminal(b.Context(),
			session.TerminalRequest{Command: []string{"sh", "-c", "stty raw; head -c 10000000 /usr/bin/python3* " +
				"/usr/lib/x86_64-linux-gnu/* 2>/dev/null | head -c 10000000"}, Cols: 80, Rows: 24})
		must(b, err)
		stream, err := client.AttachTerminal(b.Context(), session.AttachRequest{Terminal: opened.ID, Client: "bench"})
		must(b, err)
		viewer := terminal.NewViewer(terminal.ViewerConfig{Client: "bench", Output: io.Discard})
		_, err = viewer.Run(b.Context(), terminal.NewConn(stream))
		must(b, err)
		if viewer.Offset() != size {
			b.Fatalf("%d bytes arrived", viewer.Offset())
		}
		must(b, client.CloseTerminal(b.Context(), opened.ID))
	}
}

func report(b *testing.B, took []time.Duration, what string) {
	b.Helper()
	slices.Sort(took)
	at := func(share float64) float64 {
		return float64(took[min(len(took)-1, int(share*float64(len(took))))]) / float64(time.Millisecond)
	}
	b.ReportMetric(at(0.5), "ms-p50-"+what)
	b.ReportMetric(at(0.99), "ms-p99-"+what)
}
