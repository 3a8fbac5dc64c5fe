package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"slipway/backend/api"
	"slipway/backend/session"
)

// door is a port of this computer that leads to one app and to nothing else,
// beside the app's own name on the server's port.
type door struct {
	host   appHost
	public bool // on every address of this computer, without a login
	port   int
	server *http.Server
	done   chan struct{} // closed when nobody is let in any more
}

// doors are the doors that are open. They close with their session, by a wish,
// and with the server. The next server opens them again, but for what was open
// to everybody: that does not come back by itself.
type doors struct {
	server  *Server
	shelf   Shelf      // nil: nothing is remembered
	keeping sync.Mutex // orders what is written on the shelf
	// mu guards what follows. Nothing is waited for with it held.
	mu     sync.Mutex
	open   map[appHost]*door
	lost   map[appHost]keptDoor // were open when the last server ended, and are not
	closed bool                 // with the server
}

const (
	firstDoor = 1024
	lastDoor  = 65535
	// doorLook is how often a door looks whether its session still lives.
	doorLook = 2 * time.Second
)

// doorWish is what a person asks of a door. Port is the one preferred, 0: any.
type doorWish struct {
	public bool
	port   int
}

func wishOf(req api.OpenRequest) (doorWish, error) {
	if req.Port != 0 && (req.Port < firstDoor || req.Port > lastDoor) {
		return doorWish{}, session.Refused(session.CodeSessionInvalid, wrongField("port",
			fmt.Sprintf("Port %d cannot be opened on this computer.", req.Port),
			fmt.Sprintf("Choose one from %d to %d, or none.", firstDoor, lastDoor)))
	}
	return doorWish{public: req.Public, port: req.Port}, nil
}

// of returns the door of an app, nil where there is none.
func (d *doors) of(host appHost) *door {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open[host]
}

// ensure returns a door as it was wished for. One that is like that already stays,
// so that its address does; another one makes room for it. Where the
// preferred port is taken it is another.
func (d *doors) ensure(host appHost, wish doorWish) (*door, error) {
	if there := d.of(host); there != nil {
		if there.public == wish.public && (wish.port == 0 || wish.port == there.port) {
			return there, nil
		}
		d.shut(host)
	}
	listener, err := listenDoor(wish)
	if err != nil {
		return nil, &session.Error{Code: session.CodeAppConflict,
			Message: "Cannot open a port on this computer for the app.",
			Hint:    "Check firewall and limits.", Err: err}
	}
	one := d.install(host, wish.public, listener)
	d.keep()
	return one, nil
}

// install opens a door on a listener, unless somebody was quicker.
func (d *doors) install(host appHost, public bool, listener net.Listener) *door {
	made := &door{host: host, public: public, port: portOf(listener.Addr()), done: make(chan struct{})}
	made.server = &http.Server{
		Handler: d.handler(made), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: headerBytes,
		ConnContext:    d.server.withPeer, ErrorLog: d.server.apps.log,
	}
	d.mu.Lock()
	if there := d.open[host]; there != nil { // somebody was quicker
		d.mu.Unlock()
		_ = listener.Close()
		return there
	}
	d.open[host] = made
	delete(d.lost, host)
	d.mu.Unlock()
	go d.serve(made, listener)
	go d.watch(made)
	return made
}

// listenDoor takes the preferred port, or any where that is taken or none is
// preferred.
func listenDoor(wish doorWish) (net.Listener, error) {
	listener, err := listenOn(wish)
	if err != nil && wish.port != 0 {
		return listenOn(doorWish{public: wish.public})
	}
	return listener, err
}

func listenOn(wish doorWish) (net.Listener, error) {
	address := "127.0.0.1"
	if wish.public {
		address = ""
	}
	return net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(wish.port)))
}

func portOf(address net.Addr) int {
	tcp, _ := address.(*net.TCPAddr)
	if tcp == nil {
		return 0
	}
	return tcp.Port
}

func (d *doors) serve(one *door, listener net.Listener) {
	defer close(one.done)
	if err := one.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		d.server.log.Warn("a door to an app broke", "session", one.host.session, "app", one.host.app, "err", err)
		d.shut(one.host)
	}
}

// watch closes a door when its session has ended or is no longer known.
func (d *doors) watch(one *door) {
	tick := time.NewTicker(doorLook)
	defer tick.Stop()
	for {
		select {
		case <-one.done:
			return
		case <-tick.C:
		}
		if d.ended(context.Background(), one.host) {
			d.shut(one.host)
			return
		}
	}
}

// shut closes the door of an app at once, with every connection through it, and
// remembers nothing of it.
func (d *doors) shut(host appHost) {
	d.mu.Lock()
	one := d.open[host]
	delete(d.open, host)
	delete(d.lost, host)
	d.mu.Unlock()
	if one != nil {
		_ = one.server.Close() // its listener is closed either way
	}
	d.keep()
}

// close closes every door with the server, which remembers them.
func (d *doors) close() {
	d.keeping.Lock() // what is being written is written first
	defer d.keeping.Unlock()
	d.mu.Lock()
	d.closed = true
	open := d.open
	d.open = map[appHost]*door{}
	d.mu.Unlock()
	for _, one := range open {
		_ = one.server.Close() // as in shut
	}
}

// handler lets in who may come through a door. Through one that is not public
// that is who may use the server and shows the app's ticket or cookie.
func (d *doors) handler(one *door) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if one.public {
			if !namesThisComputer(host) {
				d.server.fail(w, r, badDoor(r.Host))
				return
			}
			d.server.apps.serveAdmitted(w, r, one.host)
			return
		}
		if fromStranger(r) {
			d.server.fail(w, r, strangerError())
			return
		}
		if !strings.EqualFold(host, one.host.name()) {
			d.server.fail(w, r, badDoor(r.Host))
			return
		}
		d.server.apps.serve(w, r, one.host)
	})
}

func badDoor(host string) error {
	return session.NewError(session.CodeOriginForbidden, fmt.Sprintf("%q is not a name of this app.", clip(host)),
		"Use the address that Slipway names.")
}

// namesThisComputer reports whether a host is an address, or a name that this
// computer has. A page that points a name of its own at us gets nothing from a
// network that it does not stand in.
func namesThisComputer(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil || host == "localhost" ||
		strings.HasSuffix(host, ".localhost") {
		return true
	}
	own, err := os.Hostname()
	if err != nil || own == "" {
		return false
	}
	own, _, _ = strings.Cut(strings.ToLower(own), ".")
	first, _, _ := strings.Cut(host, ".")
	return first == own
}

// addresses are where the app is reached through a door: by its own name, and
// through a public one by those of this computer.
func (one *door) addresses(path string) []string {
	at := func(host string) string {
		return "http://" + net.JoinHostPort(host, strconv.Itoa(one.port)) + "/" + strings.TrimPrefix(path, "/")
	}
	list := []string{at(one.host.name())}
	if !one.public {
		return list
	}
	if own, err := os.Hostname(); err == nil && own != "" {
		list = append(list, at(own))
	}
	for _, address := range networkAddresses() {
		list = append(list, at(address))
	}
	return list
}

// networkAddresses are the IPv4 addresses by which other computers reach this
// one, without those of bridges that containers and virtual machines hang on.
func networkAddresses() []string {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil
	}
	var list []string
	for _, one := range interfaces {
		bridge := slices.ContainsFunc([]string{"docker", "br-", "veth", "virbr"},
			func(prefix string) bool { return strings.HasPrefix(one.Name, prefix) })
		if bridge || one.Flags&net.FlagUp == 0 || one.Flags&net.FlagLoopback != 0 {
			continue
		}
		addresses, err := one.Addrs()
		if err != nil {
			continue
		}
		for _, address := range addresses {
			if network, ok := address.(*net.IPNet); ok && network.IP.To4() != nil && network.IP.IsGlobalUnicast() {
				list = append(list, network.IP.String())
			}
		}
	}
	return list
}

func doorOut(one *door, path string, wanted int) *api.Door {
	if one == nil {
		return nil
	}
	instead := wanted != 0 && wanted != one.port
	return &api.Door{Public: one.public, Port: one.port, Addresses: one.addresses(appPath(path)), Instead: instead}
}

// closeDoor shuts the door of an app. One that is not open is shut already.
func (s appRoutes) closeDoor(r *http.Request) (none, error) {
	_, id, err := s.hub.Find(r.Context(), r.PathValue("id"))
	if err != nil {
		return none{}, err
	}
	s.doors.shut(appHost{app: r.PathValue("app"), session: id})
	return none{}, nil
}
