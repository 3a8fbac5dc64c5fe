package shell

import (
	"bytes"
	"io"
	"os"
	"sync"
	"sync/atomic"
)

// outlet is what a terminal shows, waiting to be read. Writers wait while too
// much of it waits.
type outlet struct {
	mu       sync.Mutex // guards what follows
	changed  *sync.Cond
	text     []byte
	finished bool // no more will come
	closed   bool // nobody reads any more
}

// outletCap is how much may wait, in bytes.
const outletCap = 64 << 10

func newOutlet() *outlet {
	o := &outlet{}
	o.changed = sync.NewCond(&o.mu)
	return o
}

// Write shows p.
func (o *outlet) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.text) >= outletCap && !o.closed && !o.finished {
		o.changed.Wait()
	}
	if o.closed || o.finished {
		return 0, io.ErrClosedPipe
	}
	o.text = append(o.text, p...)
	o.changed.Broadcast()
	return len(p), nil
}

// Read returns what waits to be read, waiting for some.
func (o *outlet) Read(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.text) == 0 && !o.finished && !o.closed {
		o.changed.Wait()
	}
	if len(o.text) == 0 || o.closed {
		return 0, io.EOF
	}
	n := copy(p, o.text)
	o.text = o.text[n:]
	o.changed.Broadcast()
	return n, nil
}

// Finish says that no more will come; what waits can still be read.
func (o *outlet) Finish() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.finished = true
	o.changed.Broadcast()
}

// Close throws away what waits and ends reading and writing.
func (o *outlet) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.changed.Broadcast()
}

// crlf writes line ends as a terminal wants them.
type crlf struct{ to io.Writer }

func (w *crlf) Write(p []byte) (int, error) {
	if _, err := w.to.Write(bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n"))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// cooked is the line discipline of a terminal while a command runs: it echoes,
// lets the line be corrected, and hands whole lines to the command.
type cooked struct {
	echo   func(string)
	feeder *feeder
	raw    *atomic.Bool // keys go to the command as they are, but for Ctrl-C
	line   []byte
}

// take takes what is typed. Whole lines go to the command.
func (d *cooked) take(data []byte, interrupt func()) {
	for _, char := range data {
		if d.raw.Load() && char != 0x03 {
			d.feeder.put([]byte{char})
			continue
		}
		switch char {
		case 0x03:
			d.echo("^C\r\n")
			d.line = nil
			interrupt()
			d.feeder.close()
		case 0x04:
			if len(d.line) == 0 {
				d.feeder.close()
				continue
			}
			d.feeder.put(d.line)
			d.line = nil
		case 0x7f, '\b':
			d.erase()
		case 0x15:
			for len(d.line) > 0 {
				d.erase()
			}
		case '\r', '\n':
			d.echo("\r\n")
			d.feeder.put(append(d.line, '\n'))
			d.line = nil
		default:
			d.line = append(d.line, char)
			if char < ' ' {
				d.echo("^" + string(rune(char+'@')))
				continue
			}
			d.echo(string([]byte{char}))
		}
	}
}

// erase takes back the last character.
func (d *cooked) erase() {
	if len(d.line) == 0 {
		return
	}
	end := len(d.line) - 1
	for end > 0 && d.line[end]&0xc0 == 0x80 {
		end--
	}
	cells := width(string(d.line[end:]))
	if len(d.line)-end == 1 && d.line[end] < ' ' {
		cells = 2
	}
	d.line = d.line[:end]
	for range cells {
		d.echo("\b \b")
	}
}

// feeder gives lines to a command that may not read them, without making the
// terminal wait.
type feeder struct {
	mu      sync.Mutex // guards what follows
	queue   []byte
	closed  bool
	changed *sync.Cond
}

// feederCap is how much may be typed ahead, in bytes.
const feederCap = 1 << 20

func newFeeder(to *os.File) *feeder {
	f := &feeder{}
	f.changed = sync.NewCond(&f.mu)
	go func() {
		defer to.Close() //nolint:errcheck // the reader sees the end
		for {
			data, ok := f.take()
			if !ok {
				return
			}
			if _, err := to.Write(data); err != nil {
				return
			}
		}
	}()
	return f
}

func (f *feeder) take() ([]byte, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.queue) == 0 && !f.closed {
		f.changed.Wait()
	}
	data := f.queue
	f.queue = nil
	return data, len(data) > 0
}

// put adds a line; one that finds no room is lost, as a terminal loses it.
func (f *feeder) put(line []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || len(f.queue)+len(line) > feederCap {
		return
	}
	f.queue = append(f.queue, line...)
	f.changed.Broadcast()
}

// close ends the input after what is queued.
func (f *feeder) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.changed.Broadcast()
}
