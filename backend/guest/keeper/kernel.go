package keeper

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"slipway/backend/guest/link"
)

const (
	maxConnectionFile = 64 << 10
	redialPause       = 100 * time.Millisecond
	startLimit        = 10 * time.Second // until a kernel can be reached
	maxClients        = 1000
	connectRequest    = "kernel_info" + "_request" // in two parts, because it is no error code of ours
)

// message is a message of a kernel whose digest was right.
type message struct {
	id      string
	date    string
	kind    string
	parent  string // id of the request that it belongs to
	client  string // who requested it: each page that is opened has another id
	connect bool   // what a page asks first when it is connected
	content fields
	size    int  // bytes of content
	full    bool // there is no room for what it shows
}

func (m message) text(name string) string {
	value, _ := m.content[name].(string)
	return value
}

// kernel keeps the runs of one kernel.
type kernel struct {
	id     string
	file   string // of its connection
	keeper *Keeper

	mu     sync.Mutex // guards everything below
	runs   runs
	recent recent
	size   int                // bytes of runs, as the keeper has counted them
	left   map[string]absence // clients that have been connected
	path   string             // of its notebook; empty: not known yet, or it has none
	pages  int                // that are connected to it, at the last look
	looked time.Time
	gone   bool      // it cannot be listened to any more
	heard  bool      // it is listened to
	deaf   time.Time // since when it is not
	why    link.Why  // it cannot be, if that is known
}

// absence is what is known about a page that was connected to a kernel.
type absence byte

const (
	present  absence = iota
	doubtful         // it or another one has left
	away
)

// connection is what a kernel's connection file says. See the documentation of jupyter_client.
type connection struct {
	Transport string `json:"transport"` // tcp, ipc
	IP        string `json:"ip"`        // of ipc: the beginning of a path
	Port      int    `json:"iopub_port"`
	Key       string `json:"key"`
	Scheme    string `json:"signature_scheme"`
	Curve     string `json:"curve_publickey"`
}

var (
	errUnknownKernel = errors.New("a kernel of this kind cannot be listened to")
	errEncrypted     = errors.New("a kernel with CurveZMQ cannot be listened to")
)

func readConnection(path string) (connection, error) {
	file, err := os.Open(path)
	if err != nil {
		return connection{}, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxConnectionFile))
	if err != nil {
		return connection{}, err
	}
	var c connection
	if err := json.Unmarshal(data, &c); err != nil {
		return connection{}, err
	}
	signed := c.Key == "" || c.Scheme == "" || c.Scheme == "hmac-sha256"
	switch {
	case c.Curve != "":
		return connection{}, errEncrypted
	case !signed || c.Port < 1 || c.IP == "":
		return connection{}, errUnknownKernel
	}
	return c, nil
}

func (c connection) subscribe(ctx context.Context) (*subscription, error) {
	port := strconv.Itoa(c.Port)
	if c.Transport == "ipc" {
		return subscribe(ctx, "unix", c.IP+"-"+port)
	}
	return subscribe(ctx, "tcp", net.JoinHostPort(c.IP, port))
}

// listen keeps what a kernel publishes until its connection file is gone, ctx ends or the kernel cannot be listened to.
func (k *kernel) listen(ctx context.Context) error {
	for ctx.Err() == nil {
		c, err := readConnection(k.file)
		if _, halfWritten := errors.AsType[*json.SyntaxError](err); err != nil && !halfWritten {
			return err
		}
		if err == nil {
			if s, err := c.subscribe(ctx); err == nil {
				k.receive(ctx, s, c.Key)
			}
		}
		select {
		case <-time.After(redialPause):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

func (k *kernel) receive(ctx context.Context, s *subscription, key string) {
	defer s.conn.Close()
	defer context.AfterFunc(ctx, func() { _ = s.conn.Close() })()
	k.hears(true)
	for {
		parts, err := s.next()
		if err != nil {
			break
		}
		if m, err := decode(parts, key); err == nil {
			k.take(m, time.Now())
		}
	}
	k.hears(false)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.runs.stopped()
}

// hears notes whether a kernel is listened to.
func (k *kernel) hears(heard bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.heard, k.deaf, k.why = heard, time.Now(), ""
}

// unheard returns why a kernel is not listened to, empty if it is, or may only be starting.
func (k *kernel) unheard(now time.Time) link.Why {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.heard && k.why == "" && now.Sub(k.deaf) > startLimit {
		return link.WhyUnreachable
	}
	return k.why
}

func (k *kernel) take(m message, now time.Time) {
	m.full = k.keeper.size.Load() > k.keeper.most
	k.mu.Lock()
	if k.left == nil || len(k.left) > maxClients {
		k.left = map[string]absence{}
	}
	left := k.left[m.client]
	if m.connect {
		left = present
	}
	k.left[m.client] = left
	k.runs.take(m, now, left == away)
	if m.kind == "execute_input" {
		k.runs[len(k.runs)-1].doubtful = left == doubtful
	}
	k.recent.add(m)
	k.weigh()
	k.mu.Unlock()
	k.keeper.makeRoom()
}

// weigh has the keeper count what the runs take. The caller has locked the kernel.
func (k *kernel) weigh() {
	size := k.runs.bytes()
	k.keeper.size.Add(int64(size - k.size))
	k.size = size
}

// first returns a copy of the run that is dropped first, nil if there is none.
func (k *kernel) first() *run {
	k.mu.Lock()
	defer k.mu.Unlock()
	first := k.runs.first()
	if first != nil {
		first = new(*first)
	}
	return first
}

func (k *kernel) drop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.runs.first() != nil {
		k.runs.drop()
		k.weigh()
	}
}

// seen notes what the server says about a kernel: its notebook and how many pages are connected.
func (k *kernel) seen(path string, pages int, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if path != "" {
		k.path = path
	}
	if pages == 0 {
		k.runs.miss(k.looked)
	} else if pages < k.pages { // the list of Notebook 7, say, is connected to kernels, too
		k.runs.doubt(k.looked)
	}
	for client, before := range k.left {
		if pages == 0 {
			k.left[client] = away
		} else if pages < k.pages && before == present {
			k.left[client] = doubtful
		}
	}
	k.pages, k.looked = pages, now
}

// place returns the notebook of a kernel, and its pages.
func (k *kernel) place() (path string, pages int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.path, k.pages
}

// leave notes why a kernel cannot be listened to any more, and back whether that was so until now.
func (k *kernel) leave(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.gone, k.why = true, link.WhyUnreadable
	if errors.Is(err, errEncrypted) {
		k.why = link.WhyEncrypted
	}
}

func (k *kernel) back() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	was := k.gone
	k.gone = false
	return was
}

// over reports whether a kernel is gone and no notebook lacks anything of it.
func (k *kernel) over() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.gone && (k.path == "" || !k.runs.unsettled())
}

// lost forgets the runs of a kernel that is gone if its notebook is, too.
func (k *kernel) lost(err error) {
	if errors.Is(err, errMissing) && k.hasLeft() {
		k.release()
	}
}

func (k *kernel) hasLeft() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.gone
}

func (k *kernel) release() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.runs = nil
	k.weigh()
}

// unsettled reports whether a file may lack something.
func (k *kernel) unsettled() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.runs.unsettled()
}

// prints reports whether a cell runs or has only just ended.
func (k *kernel) prints(now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.ContainsFunc(k.runs, func(r *run) bool { return !r.done || now.Sub(r.last) < seldom })
}

// decode reads a message on the wire: topics, a delimiter, a digest, then header, parent, metadata and content.
func decode(parts [][]byte, key string) (message, error) {
	at := 0
	for at < len(parts) && !bytes.Equal(parts[at], []byte("<IDS|MSG>")) {
		at++
	}
	if len(parts) < at+6 {
		return message{}, fmt.Errorf("a message of %d parts", len(parts))
	}
	digest, signed := parts[at+1], parts[at+2:at+6]
	if key != "" {
		mac := hmac.New(sha256.New, []byte(key))
		for _, part := range signed {
			mac.Write(part)
		}
		if !hmac.Equal(digest, []byte(hex.EncodeToString(mac.Sum(nil)))) {
			return message{}, errors.New("a message with another digest")
		}
	}
	var header, parent struct {
		ID     string `json:"msg_id"`
		Date   string `json:"date"`
		Type   string `json:"msg_type"`
		Client string `json:"session"`
	}
	m := message{size: len(signed[3])}
	if err := errors.Join(json.Unmarshal(signed[0], &header), json.Unmarshal(signed[1], &parent),
		unmarshal(signed[3], &m.content)); err != nil {
		return message{}, err
	}
	m.id, m.date = header.ID, header.Date
	m.kind, m.parent, m.client, m.connect = header.Type, parent.ID, parent.Client, parent.Type == connectRequest
	return m, nil
}

// unmarshal keeps numbers as they are written.
func unmarshal(data []byte, value any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	return decoder.Decode(value)
}
