package secure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/moby/sys/atomicwriter"
)

// Device is a paired device.
type Device struct {
	Key    string    `json:"key"` // fingerprint, see [FingerprintOf]
	Name   string    `json:"name"`
	Owner  string    `json:"owner,omitempty"` // the account that its sessions belong to
	Role   Role      `json:"role,omitempty"`
	Paired time.Time `json:"paired"`
	Seen   time.Time `json:"seen,omitzero"` // when it was last connected, to the minute
	Live   int       `json:"-"`             // its connections now; only in what [Devices.List] returns
}

// Role is what a device may do.
type Role string

// The roles.
const (
	RoleAdmin Role = "admin"
	RoleUser  Role = "user"
)

// Errors of a device list.
var (
	ErrUnknownDevice  = errors.New("secure: no such device is paired")
	ErrTooManyDevices = errors.New("secure: too many devices are paired")
	errBusyDevice     = errors.New("secure: the device has too many connections")
)

const (
	maxDevices     = 1024
	maxDevicesFile = 1 << 20
	maxNameLength  = 64 // of characters
	devicesVersion = 1
	// seenGrain is how often a device's last connection is written to disk.
	seenGrain = time.Minute
)

// devicesFile is the form of the list on disk.
type devicesFile struct {
	Version int      `json:"version"`
	Devices []Device `json:"devices"`
}

// Devices is the list of paired devices, kept in a file that only its owner may
// read, together with their live connections. All methods are safe for
// concurrent use. One process owns a file at a time.
type Devices struct {
	path string
	now  func() time.Time

	mu   sync.Mutex // guards the following
	list []Device
	live map[string]map[io.Closer]struct{} // by key
}

// OpenDevices reads the list in a file; no file is an empty list. now is
// time.Now if nil.
func OpenDevices(path string, now func() time.Time) (*Devices, error) {
	if now == nil {
		now = time.Now
	}
	d := &Devices{path: path, now: now, live: map[string]map[io.Closer]struct{}{}}
	data, err := readLimited(path, maxDevicesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return nil, err
	}
	d.list, err = parseDevices(data)
	if err != nil {
		return nil, fmt.Errorf("%w (in %s)", err, path)
	}
	return d, nil
}

func parseDevices(data []byte) ([]Device, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var file devicesFile
	if err := decoder.Decode(&file); err != nil {
		return nil, fmt.Errorf("secure: the device list is not readable: %w", err)
	}
	if file.Version != devicesVersion {
		return nil, fmt.Errorf("secure: the device list has version %d, not %d", file.Version, devicesVersion)
	}
	if len(file.Devices) > maxDevices {
		return nil, ErrTooManyDevices
	}
	seen := map[string]bool{}
	for _, device := range file.Devices {
		if err := device.check(); err != nil {
			return nil, err
		}
		if seen[device.Key] {
			return nil, fmt.Errorf("secure: device %s is listed twice", device.Key)
		}
		seen[device.Key] = true
	}
	return file.Devices, nil
}

func (d Device) check() error {
	switch {
	case !ValidFingerprint(d.Key):
		return errors.New("secure: a device's key is not a fingerprint")
	case !validName(d.Name) || d.Name == "":
		return fmt.Errorf("secure: a device's name must have 1 to %d printable characters", maxNameLength)
	case !validName(d.Owner):
		return fmt.Errorf("secure: a device's owner must have at most %d printable characters", maxNameLength)
	case d.Role != "" && d.Role != RoleAdmin && d.Role != RoleUser:
		return fmt.Errorf("secure: %q is not a role", d.Role)
	}
	return nil
}

// validName reports whether a name can be shown and logged as it is.
func validName(name string) bool {
	return utf8.ValidString(name) && utf8.RuneCountInString(name) <= maxNameLength &&
		strings.TrimSpace(name) == name && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// List returns the devices by name.
func (d *Devices) List() []Device {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := slices.Clone(d.list)
	for i := range out {
		out[i].Live = len(d.live[out[i].Key])
	}
	slices.SortFunc(out, func(a, b Device) int {
		if byName := strings.Compare(a.Name, b.Name); byName != 0 {
			return byName
		}
		return strings.Compare(a.Key, b.Key)
	})
	return out
}

// Find returns the device with a key.
func (d *Devices) Find(key string) (Device, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := d.index(key)
	if i < 0 {
		return Device{}, false
	}
	device := d.list[i]
	device.Live = len(d.live[key])
	return device, true
}

// Add lists a device; one with the same key is replaced, since pairing again
// settles anew what it may do. Its connections of before then end.
func (d *Devices) Add(device Device) error {
	if err := device.check(); err != nil {
		return err
	}
	if device.Paired.IsZero() {
		device.Paired = d.now().UTC().Truncate(time.Second)
	}
	device.Live = 0
	return d.change(device.Key, func(list []Device) ([]Device, error) {
		list = slices.DeleteFunc(list, func(old Device) bool { return old.Key == device.Key })
		if len(list) >= maxDevices {
			return nil, ErrTooManyDevices
		}
		return append(list, device), nil
	})
}

// Rename gives a device another name.
func (d *Devices) Rename(key, name string) error {
	return d.change("", func(list []Device) ([]Device, error) {
		i := slices.IndexFunc(list, func(device Device) bool { return device.Key == key })
		if i < 0 {
			return nil, ErrUnknownDevice
		}
		list[i].Name = name
		return list, list[i].check()
	})
}

// Allow changes whose a device is and what it may do. Its connections end, so
// that nothing goes on under what it was allowed before.
func (d *Devices) Allow(key string, grant Grant) error {
	return d.change(key, func(list []Device) ([]Device, error) {
		i := slices.IndexFunc(list, func(device Device) bool { return device.Key == key })
		if i < 0 {
			return nil, ErrUnknownDevice
		}
		list[i].Owner, list[i].Role = grant.Owner, grant.Role
		return list, list[i].check()
	})
}

// Revoke removes a device and ends its connections at once. When the file
// cannot be written the device stays listed, so that nobody believes it gone
// who would see it return after a restart; its connections end all the same.
func (d *Devices) Revoke(key string) error {
	return d.change(key, func(list []Device) ([]Device, error) {
		n := len(list)
		list = slices.DeleteFunc(list, func(device Device) bool { return device.Key == key })
		if len(list) == n {
			return nil, ErrUnknownDevice
		}
		return list, nil
	})
}

// Disconnect ends every connection of every device and returns how many devices
// had one. They stay listed and may come back at once.
func (d *Devices) Disconnect() int {
	d.mu.Lock()
	devices := len(d.live)
	var ended []io.Closer
	for _, connections := range d.live {
		for c := range connections {
			ended = append(ended, c)
		}
	}
	d.mu.Unlock()
	for _, c := range ended {
		_ = c.Close() // it takes itself out of the list
	}
	return devices
}

// change edits the list, writes it and, when cut is not empty, ends that
// device's connections.
func (d *Devices) change(cut string, edit func([]Device) ([]Device, error)) error {
	d.mu.Lock()
	list, err := edit(slices.Clone(d.list))
	if err == nil {
		err = d.save(list)
	}
	if err == nil {
		d.list = list
	}
	var ended []io.Closer
	for c := range d.live[cut] {
		ended = append(ended, c)
	}
	d.mu.Unlock()
	for _, c := range ended {
		_ = c.Close() // it takes itself out of the list
	}
	return err
}

// save writes the list; d.mu is held so that files follow one another in order.
func (d *Devices) save(list []Device) error {
	data, err := json.MarshalIndent(devicesFile{Version: devicesVersion, Devices: list}, "", "  ")
	if err != nil {
		return err
	}
	return atomicwriter.WriteFile(d.path, data, 0o600)
}

func (d *Devices) index(key string) int {
	return slices.IndexFunc(d.list, func(device Device) bool { return device.Key == key })
}

// admit finds the device with a key, or else with one of the keys that it
// followed, and counts conn among its connections until release. A device that
// comes with a new key is listed under it from then on, and moved is its old one.
// conn's Close may call nothing of the list but release.
func (d *Devices) admit(key string, old []string, conn io.Closer, most int) (device Device, moved string, err error) {
	d.mu.Lock()
	i := d.index(key)
	if i < 0 {
		for _, before := range old {
			if i = d.index(before); i >= 0 {
				moved = before
				break
			}
		}
	}
	if i < 0 {
		d.mu.Unlock()
		return Device{}, "", ErrUnknownDevice
	}
	device, ended, err := d.attach(i, key, moved, conn, most)
	d.mu.Unlock()
	for _, c := range ended {
		_ = c.Close()
	}
	return device, moved, err
}

// attach is admit's part for the device at i; d.mu is held.
func (d *Devices) attach(i int, key, moved string, conn io.Closer, most int) (Device, []io.Closer, error) {
	if moved == "" && len(d.live[key]) >= most {
		return Device{}, nil, errBusyDevice
	}
	list := slices.Clone(d.list)
	now := d.now().UTC().Truncate(time.Second)
	stale := now.Sub(list[i].Seen) >= seenGrain
	list[i].Key = key
	if stale {
		list[i].Seen = now
	}
	if moved != "" || stale {
		if err := d.save(list); err != nil && moved != "" {
			return Device{}, nil, err // a full disk keeps out nobody but who changes a key
		}
		d.list = list
	}
	var ended []io.Closer
	for c := range d.live[moved] {
		ended = append(ended, c)
	}
	if d.live[key] == nil {
		d.live[key] = map[io.Closer]struct{}{}
	}
	d.live[key][conn] = struct{}{}
	return list[i], ended, nil
}

// release says that a connection has ended.
func (d *Devices) release(key string, conn io.Closer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.live[key][conn]; !ok {
		return
	}
	delete(d.live[key], conn)
	if len(d.live[key]) == 0 {
		delete(d.live, key)
	}
	if i := d.index(key); i >= 0 {
		if now := d.now().UTC().Truncate(time.Second); now.Sub(d.list[i].Seen) >= seenGrain {
			d.list[i].Seen = now // goes to disk with the next change
		}
	}
}
