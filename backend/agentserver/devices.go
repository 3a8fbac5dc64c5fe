package agentserver

import (
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"slipway/backend/access"
	"slipway/backend/agentrpc"
	"slipway/backend/place"
	"slipway/backend/session"
	"slipway/tunnel/secure"
)

// pairedDevices lets paired devices in by the network. Its methods are safe for
// concurrent use; a nil one lets nobody in.
type pairedDevices struct {
	keyFile  string
	list     *secure.Devices
	pairings *secure.Pairings
	listener *secure.Listener
	audit    *access.Audit

	mu       sync.Mutex // guards identity, and is held while it is replaced
	identity *secure.Identity
}

func openPairedDevices(home place.Home, listen string, audit *access.Audit) (*pairedDevices, error) {
	if err := home.Make(); err != nil {
		return nil, err
	}
	d := &pairedDevices{pairings: secure.NewPairings(time.Now), keyFile: home.Join("agent.key"), audit: audit}
	var err error
	if d.identity, err = secure.OpenIdentity(d.keyFile); err != nil {
		return nil, &session.Error{Code: session.CodeServerInvalid, Message: "The agent's key cannot be read.",
			Hint: "Mend or remove " + home.Join("agent.key") + "; without it devices must be paired anew.", Err: err}
	}
	if d.list, err = secure.OpenDevices(home.Join("devices.json"), time.Now); err != nil {
		return nil, &session.Error{Code: session.CodeServerInvalid,
			Message: "The list of paired devices cannot be read.",
			Hint: "Mend or remove " + home.Join("devices.json") +
				"; without it devices must be paired anew.", Err: err}
	}
	host, _ := os.Hostname() // a name for people
	d.listener, err = secure.Listen(listen, secure.ListenConfig{Identity: d.identity, Devices: d.list,
		Pairings: d.pairings, Name: host, Observe: d.observe})
	if err != nil {
		return nil, &session.Error{Code: session.CodeListenConflict,
			Message: fmt.Sprintf("The agent cannot listen on %s.",
				listen),
			Hint: "Another program may have the port: slipway agent start --listen 0.0.0.0:PORT, or --listen off.",
			Err:  err}
	}
	return d, nil
}

// observe writes down who was let in by a code, who tried, and whose key moved.
func (d *pairedDevices) observe(e secure.Event) {
	who := access.Identity{Device: e.Key, From: e.Address}
	device, known := d.list.Find(e.Key)
	if known {
		who.Owner, who.Role = device.Owner, session.Role(device.Role)
	}
	act := access.Act{Security: true, Target: e.Name}
	switch e.Kind {
	case secure.EventPaired:
		act.Method = "PairDevice"
	case secure.EventWrongCode:
		act.Method, act.Err = "TryCode", &session.Error{Code: session.CodePairCode}
	case secure.EventNoCode:
		act.Method, act.Err, act.Stranger = "TryCode", &session.Error{Code: session.CodePairExpired}, true
	case secure.EventKeyMoved:
		act.Method, act.Target = "MoveKey", e.Before
	case secure.EventRefused:
		act.Method, act.Err, act.Stranger = "Connect", &session.Error{Code: session.CodeNotPaired}, true
		if known {
			act.Err = &session.Error{Code: session.CodeUnreachable}
		}
	default:
		return
	}
	d.audit.Note(who, act)
}

// address is where the agent listens, as people type it elsewhere.
func (d *pairedDevices) address() string {
	at, ok := d.listener.Addr().(*net.TCPAddr)
	if !ok {
		return d.listener.Addr().String()
	}
	host := at.IP.String()
	if at.IP.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	return net.JoinHostPort(host, fmt.Sprint(at.Port))
}

// key is the fingerprint of the agent's key as it is now.
func (d *pairedDevices) key() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.identity.Fingerprint()
}

// rotate gives the agent another key. What is connected is cut off, and learns
// when it returns, with the old key's signature, that the agent is the same.
func (d *pairedDevices) rotate() (session.KeyRotation, error) {
	d.mu.Lock()
	before := d.identity
	next, err := before.Rotate()
	if err == nil {
		err = next.Save(d.keyFile)
	}
	if err == nil {
		d.identity = next
		d.listener.SetIdentity(next)
	}
	d.mu.Unlock()
	if err != nil {
		return session.KeyRotation{}, &session.Error{Code: session.CodeAgentInternal,
			Message: "The new key cannot be kept, so the old one stays.", Hint: "Look at the disk that has " +
				d.keyFile + ".", Err: err}
	}
	return session.KeyRotation{Before: before.Fingerprint(), Key: next.Fingerprint(), Devices: d.list.Disconnect()}, nil
}

// offer makes a code.
func (d *pairedDevices) offer(request session.PairRequest, user string) (session.PairCode, error) {
	grant, err := granted(request, user)
	if err != nil {
		return session.PairCode{}, err
	}
	offer, err := d.pairings.Offer(grant)
	if err != nil {
		return session.PairCode{}, agentrpc.FaultError(err)
	}
	return session.PairCode{Code: offer.Code, Address: d.address(), Key: d.key(), Expires: offer.Expires}, nil
}

func (d *pairedDevices) all() []session.PairedDevice {
	list := d.list.List()
	devices := make([]session.PairedDevice, len(list))
	for i, one := range list {
		devices[i] = session.PairedDevice{Key: one.Key, Name: one.Name, Owner: one.Owner, Role: session.Role(one.Role),
			Added: one.Paired, Seen: one.Seen, Live: one.Live}
	}
	return devices
}

// revoke takes a device's access, by its fingerprint or, where only one has it,
// its name.
func (d *pairedDevices) revoke(device string) error {
	var keys []string
	for _, one := range d.list.List() {
		if one.Key == device {
			keys = []string{one.Key}
			break
		}
		if one.Name == device {
			keys = append(keys, one.Key)
		}
	}
	switch len(keys) {
	case 0:
		return &session.Error{Code: session.CodeAgentNotFound, Message: fmt.Sprintf("There is no device %q.", device),
			Hint: "List them: slipway agent devices"}
	case 1:
		return agentrpc.FaultError(d.list.Revoke(keys[0]))
	}
	return &session.Error{Code: session.CodeAgentConflict, Message: fmt.Sprintf("%d devices have the name %q.",
		len(keys),
		device), Hint: "Name it by its key: slipway agent devices"}
}

func (d *pairedDevices) close() error {
	if d == nil {
		return nil
	}
	return d.listener.Close()
}

// find returns the device with a key.
func (d *pairedDevices) find(key string) (secure.Device, bool) {
	if d == nil || key == "" {
		return secure.Device{}, false
	}
	return d.list.Find(key)
}
