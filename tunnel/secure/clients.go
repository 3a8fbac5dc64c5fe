package secure

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/moby/sys/atomicwriter"
)

// Client is a computer that is paired with this agent.
type Client struct {
	Key    string    `json:"key"` // fingerprint, see [FingerprintOf]
	Name   string    `json:"name"`
	Owner  string    `json:"owner,omitempty"` // the account that its sessions belong to
	Role   Role      `json:"role,omitempty"`
	Paired time.Time `json:"paired"`
	Seen   time.Time `json:"seen,omitzero"` // when it was last connected, to the minute
	Live   int       `json:"-"`             // its connections now; set by [Clients.List] and [Clients.Find]
}

// Role is what a client may do.
type Role string

// The roles.
const (
	RoleAdmin Role = "admin"
	RoleUser  Role = "user"
)

// Errors of a client list.
var (
	ErrUnknownClient  = errors.New("secure: no such client")
	ErrTooManyClients = errors.New("secure: too many clients are paired")
	errBusyClient     = errors.New("secure: the client has too many connections")
)

const (
	maxClients     = 1024
	maxClientsFile = 1 << 20
	maxNameLength  = 64 // characters
	clientsVersion = 1
	seenGrain      = time.Minute // between two updates of a client's Seen
)

// clientsFile is the format of the list on disk.
type clientsFile struct {
	Version int      `json:"version"`
	Clients []Client `json:"devices"`
}

// Clients is the list of clients, stored in a file that only its owner may read, with their live connections. All
// methods are safe for concurrent use. Only one process may use a file at a time.
type Clients struct {
	path string
	now  func() time.Time

	mu   sync.Mutex // guards the following
	list []Client
	live map[string]map[io.Closer]struct{} // by key
}

// OpenClients reads the list in a file. Without a file the list is empty. now is time.Now if nil.
func OpenClients(path string, now func() time.Time) (*Clients, error) {
	if now == nil {
		now = time.Now
	}
	d := &Clients{path: path, now: now, live: map[string]map[io.Closer]struct{}{}}
	data, err := readLimited(path, maxClientsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return nil, err
	}
	d.list, err = parseClients(data)
	if err != nil {
		return nil, fmt.Errorf("%w (in %s)", err, path)
	}
	return d, nil
}

func parseClients(data []byte) ([]Client, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var file clientsFile
	if err := decoder.Decode(&file); err != nil {
		return nil, fmt.Errorf("secure: the client list cannot be read: %w", err)
	}
	if file.Version != clientsVersion {
		return nil, fmt.Errorf("secure: the client list has version %d, not %d", file.Version, clientsVersion)
	}
	if len(file.Clients) > maxClients {
		return nil, ErrTooManyClients
	}
	seen := map[string]bool{}
	for _, client := range file.Clients {
		if err := client.check(); err != nil {
			return nil, err
		}
		if seen[client.Key] {
			return nil, fmt.Errorf("secure: client %s is listed twice", client.Key)
		}
		seen[client.Key] = true
	}
	return file.Clients, nil
}

func (d Client) check() error {
	switch {
	case !ValidFingerprint(d.Key):
		return errors.New("secure: a client's key is not a fingerprint")
	case !validName(d.Name) || d.Name == "":
		return fmt.Errorf("secure: a client's name must have 1 to %d printable characters", maxNameLength)
	case !validName(d.Owner):
		return fmt.Errorf("secure: a client's owner must have at most %d printable characters", maxNameLength)
	case d.Role != "" && d.Role != RoleAdmin && d.Role != RoleUser:
		return fmt.Errorf("secure: %q is not a role", d.Role)
	}
	return nil
}

// validName reports whether a name can be shown and logged.
func validName(name string) bool {
	return utf8.ValidString(name) && utf8.RuneCountInString(name) <= maxNameLength &&
		strings.TrimSpace(name) == name && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// List returns the clients, sorted by name.
func (d *Clients) List() []Client {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := slices.Clone(d.list)
	for i := range out {
		out[i].Live = len(d.live[out[i].Key])
	}
	slices.SortFunc(out, func(a, b Client) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Key, b.Key))
	})
	return out
}

func (d *Clients) Find(key string) (Client, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := d.index(key)
	if i < 0 {
		return Client{}, false
	}
	client := d.list[i]
	client.Live = len(d.live[key])
	return client, true
}

// Add adds a client. It replaces one with the same key and ends its connections, since pairing again may change what
// the client may do.
func (d *Clients) Add(client Client) error {
	if err := client.check(); err != nil {
		return err
	}
	if client.Paired.IsZero() {
		client.Paired = d.second()
	}
	client.Live = 0
	return d.change(client.Key, func(list []Client) ([]Client, error) {
		list = slices.DeleteFunc(list, func(old Client) bool { return old.Key == client.Key })
		if len(list) >= maxClients {
			return nil, ErrTooManyClients
		}
		return append(list, client), nil
	})
}

// Revoke removes a client and ends its connections at once. If the file cannot be written, the connections end but the
// client stays listed, since after a restart it would be accepted again.
func (d *Clients) Revoke(key string) error {
	return d.change(key, func(list []Client) ([]Client, error) {
		n := len(list)
		list = slices.DeleteFunc(list, func(client Client) bool { return client.Key == key })
		if len(list) == n {
			return nil, ErrUnknownClient
		}
		return list, nil
	})
}

// Disconnect ends all connections and returns how many clients had one. The clients stay listed and may reconnect at
// once.
func (d *Clients) Disconnect() int {
	d.mu.Lock()
	clients := len(d.live)
	var ended []io.Closer
	for key := range d.live {
		ended = append(ended, d.connections(key)...)
	}
	d.mu.Unlock()
	closeAll(ended)
	return clients
}

// second is the time to the second.
func (d *Clients) second() time.Time { return d.now().UTC().Truncate(time.Second) }

// change edits and writes the list, and ends the connections of one client.
func (d *Clients) change(cut string, edit func([]Client) ([]Client, error)) error {
	d.mu.Lock()
	list, err := edit(slices.Clone(d.list))
	if err == nil {
		err = d.save(list)
	}
	if err == nil {
		d.list = list
	}
	ended := d.connections(cut)
	d.mu.Unlock()
	closeAll(ended)
	return err
}

// connections returns the live connections of a client; d.mu is held.
func (d *Clients) connections(key string) []io.Closer { return slices.Collect(maps.Keys(d.live[key])) }

// closeAll closes connections, which call release.
func closeAll(connections []io.Closer) {
	for _, c := range connections {
		_ = c.Close()
	}
}

// save writes the list; d.mu is held so that files are written in order.
func (d *Clients) save(list []Client) error {
	data, err := json.MarshalIndent(clientsFile{Version: clientsVersion, Clients: list}, "", "  ")
	if err != nil {
		return err
	}
	return atomicwriter.WriteFile(d.path, data, 0o600)
}

func (d *Clients) index(key string) int {
	return slices.IndexFunc(d.list, func(client Client) bool { return client.Key == key })
}

// admit finds the client with a key, or else with one of its old keys, and counts conn among its connections until
// release. A client with a new key is listed under that from then on, and moved is its old key. conn's Close may call
// only release.
func (d *Clients) admit(key string, old []string, conn io.Closer, most int) (client Client, moved string, err error) {
	d.mu.Lock()
	i := d.index(key)
	for _, before := range old {
		if i < 0 {
			i, moved = d.index(before), before
		}
	}
	if i < 0 {
		d.mu.Unlock()
		return Client{}, "", ErrUnknownClient
	}
	ended := d.connections(moved)
	client, err = d.attach(i, key, moved, conn, most)
	d.mu.Unlock()
	if err == nil {
		closeAll(ended)
	}
	return client, moved, err
}

// attach adds a connection to the client at i; d.mu is held.
func (d *Clients) attach(i int, key, moved string, conn io.Closer, most int) (Client, error) {
	if moved == "" && len(d.live[key]) >= most {
		return Client{}, errBusyClient
	}
	list, now := slices.Clone(d.list), d.second()
	stale := now.Sub(list[i].Seen) >= seenGrain
	list[i].Key = key
	if stale {
		list[i].Seen = now
	}
	if moved != "" || stale {
		if err := d.save(list); err != nil && moved != "" {
			return Client{}, err // a full disk refuses only a client with a new key
		}
		d.list = list
	}
	if d.live[key] == nil {
		d.live[key] = map[io.Closer]struct{}{}
	}
	d.live[key][conn] = struct{}{}
	return list[i], nil
}

// release removes a connection that has ended.
func (d *Clients) release(key string, conn io.Closer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.live[key][conn]; !ok {
		return
	}
	delete(d.live[key], conn)
	if len(d.live[key]) == 0 {
		delete(d.live, key)
	}
	if i, now := d.index(key), d.second(); i >= 0 && now.Sub(d.list[i].Seen) >= seenGrain {
		d.list[i].Seen = now // written with the next change
	}
}
