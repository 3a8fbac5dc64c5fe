package router

import (
	"net/http"
	"time"
)

// answer is what goes to the client.
type answer struct {
	w       http.ResponseWriter
	control *http.ResponseController
	silence time.Duration // how long a write waits
	began   bool          // the status was sent
	beaten  bool          // it was sent with a sign of life, and nothing else was since
	status  int
	first   time.Time // of the body; zero: nothing was sent
	bytes   int64     // of the body, without signs of life
}

// beat sends a sign of life to a client that asked for a stream.
func (a *answer) beat() {
	if !a.began {
		h := a.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-cache")
		a.begin(http.StatusOK)
		a.beaten = true
	}
	_ = a.send([]byte(": waiting\n\n"), true) // a client that left is noticed by its context
}

func (a *answer) begin(status int) {
	a.began, a.status = true, status
	a.w.WriteHeader(status)
}

// write sends bytes of the body.
func (a *answer) write(p []byte, flush bool) error {
	if len(p) == 0 {
		return nil
	}
	if a.first.IsZero() {
		a.first = time.Now()
	}
	a.beaten = false
	a.bytes += int64(len(p))
	return a.send(p, flush)
}

func (a *answer) send(p []byte, flush bool) error {
	_ = a.control.SetWriteDeadline(time.Now().Add(a.silence)) // a connection without deadlines has no limit
	if _, err := a.w.Write(p); err != nil || !flush {
		return err
	}
	return a.control.Flush()
}

// fail answers with a problem. An answer that has begun is aborted, so that nobody takes it for a whole one.
func (a *answer) fail(p *problem) {
	switch {
	case p.status > 0 && !a.began:
		a.began, a.status = true, p.status
		p.write(a.w)
	case p.status > 0 && a.beaten && a.write([]byte("data: "+string(p.json())+"\n\n"), true) == nil:
	default:
		panic(http.ErrAbortHandler)
	}
}
