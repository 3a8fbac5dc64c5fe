package server

import (
	"cmp"
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

// door is a port of this computer that leads to one app, besides the app's own host name on the server's port.
type door struct {
	host   appHost
	public bool // on every address of this computer, without a login
	port   int
	server *http.Server
	done   chan struct{} // closed when the port is
}

// doors are the open doors. They close with their session, on request, and with the server. The next server opens them
// again, except public ones: those never open by themselves.
type doors struct {
	server  *Server
	shelf   Shelf      // nil: doors are not stored
	keeping sync.Mutex // orders the writes to shelf
	// services are doors of whole machines; they stay
	services serviceDoors

	mu     sync.Mutex // guards what follows; never held while waiting
	open   map[appHost]*door
	lost   map[appHost]keptDoor // were open when the last server ended and are closed now
	closed bool                 // with the server
}

const (
	doorsKey  = "server.doors"
	firstDoor = 1024
	lastDoor  = 65535
	doorLook  = 2 * time.Second // how often a door checks whether its session is live
)

// doorWish is a requested door. Port is the preferred one, 0: any.
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

func (d *doors) of(host appHost) *door {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open[host]
}

// ensure opens a door as requested. A door that already matches stays, so that its address does; any other is replaced.
// If the preferred port is in use, the door gets another one.
func (d *doors) ensure(host appHost, wish doorWish) (*door, error) {
	if there := d.of(host); there != nil {
		if there.public == wish.public && (wish.port == 0 || wish.port == there.port) {
			return there, nil
		}
		d.shut(host)
	}
	listener, err := listenOn(wish)
	if err != nil && wish.port != 0 {
		listener, err = listenOn(doorWish{public: wish.public})
	}
	if err != nil {
		return nil, &session.Error{Code: session.CodeAppConflict,
			Message: "Cannot open a port on this computer for the app.",
			Hint:    "Check firewall and limits.", Err: err}
	}
	one := d.install(host, wish.public, listener)
	d.keep()
	return one, nil
}

// install opens a door on listener, unless the app has one already.
func (d *doors) install(host appHost, public bool, listener net.Listener) *door {
	port := listener.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // of listenOn
	made := &door{host: host, public: public, port: port, done: make(chan struct{})}
	made.server = &http.Server{
		Handler: d.handler(made), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: headerBytes, ConnContext: d.server.withPeer, ErrorLog: d.server.apps.log,
	}
	d.mu.Lock()
	if there := d.open[host]; there != nil {
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

func listenOn(wish doorWish) (net.Listener, error) {
	address := "127.0.0.1"
	if wish.public {
		address = ""
	}
	return net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(wish.port)))
}

func (d *doors) serve(one *door, listener net.Listener) {
	defer close(one.done)
	if err := one.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		d.server.log.Warn("a door to an app broke", "session", one.host.session, "app", one.host.app, "err", err)
		d.shut(one.host)
	}
}

// watch closes a door when its session has ended or no longer exists.
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

// shut closes the door of an app with all its connections, and forgets it.
func (d *doors) shut(host appHost) {
	d.mu.Lock()
	one := d.open[host]
	delete(d.open, host)
	delete(d.lost, host)
	d.mu.Unlock()
	if one != nil {
		_ = one.server.Close() // the listener is closed even if this fails
	}
	d.keep()
}

// close closes all doors with the server, but keeps them on the shelf.
func (d *doors) close() {
	d.services.close()
	d.keeping.Lock() // waits for a write in progress
	defer d.keeping.Unlock()
	d.mu.Lock()
	d.closed = true
	open := d.open
	d.open = map[appHost]*door{}
	d.mu.Unlock()
	for _, one := range open {
		_ = one.server.Close()
	}
}

// handler authorizes requests through a door. A door that is not public admits users of this server who show the app's
// ticket or cookie.
func (d *doors) handler(one *door) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		switch {
		case !one.public && fromStranger(r):
			d.server.fail(w, r, strangerError())
		case one.public && !namesThisComputer(host), !one.public && !strings.EqualFold(host, one.host.name()):
			d.server.fail(w, r, session.NewError(session.CodeOriginForbidden,
				fmt.Sprintf("%q is not a name of this app.", clip(r.Host)), "Use the address that Slipway names."))
		case one.public:
			d.server.apps.serveAdmitted(w, r, one.host)
		default:
			d.server.apps.serve(w, r, one.host)
		}
	}
}

// namesThisComputer reports whether a host is an IP address or a name of this computer. This stops DNS rebinding from
// networks that the page's server is not part of.
func namesThisComputer(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil || host == "localhost" ||
		strings.HasSuffix(host, ".localhost") {
		return true
	}
	own, err := os.Hostname()
	own, _, _ = strings.Cut(strings.ToLower(own), ".")
	first, _, _ := strings.Cut(host, ".")
	return err == nil && own != "" && first == own
}

// addresses returns the addresses of the app through a door: its own host name and, through a public door, those of
// this computer.
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

// networkAddresses returns the IPv4 addresses of this computer, without those of the bridges of containers and virtual
// machines.
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
	return &api.Door{Public: one.public, Port: one.port, Addresses: one.addresses(appPath(path)),
		Instead: wanted != 0 && wanted != one.port}
}

// Shelf stores documents by key. store.Shelf implements it.
type Shelf interface {
	Load(key string, v any) (bool, error)
	Save(key string, v any) error
}

type keptDoor struct {
	Session session.ID `json:"session"`
	App     string     `json:"app"`
	Port    int        `json:"port"`
	Public  bool       `json:"public"`
}

func (k keptDoor) host() appHost { return appHost{app: k.App, session: k.Session} }

// restore opens the stored doors again, each on its own port. Public ones stay closed, and so do those whose port is in
// use; they are reported until a person opens or dismisses them.
func (d *doors) restore(ctx context.Context) {
	d.services.restore()
	if d.shelf == nil {
		return
	}
	var kept []keptDoor
	if _, err := d.shelf.Load(doorsKey, &kept); err != nil {
		d.server.log.Warn("the doors of the last time are not known", "err", err)
		return
	}
	for _, k := range kept {
		if !k.Public {
			if listener, err := listenOn(doorWish{port: k.Port}); err == nil {
				d.install(k.host(), false, listener)
				continue
			}
		}
		d.server.log.Info("a door to an app stays shut", "session", k.Session, "app", k.App, "port", k.Port, "public",
			k.Public)
		d.mu.Lock()
		d.lost[k.host()] = k
		d.mu.Unlock()
		go func() {
			if d.ended(ctx, k.host()) {
				d.shut(k.host())
			}
		}()
	}
}

// ended reports whether a session has certainly ended.
func (d *doors) ended(ctx context.Context, host appHost) bool {
	s, err := d.server.apps.sessionOf(ctx, host)
	return err == nil && s.Status.Terminal() || session.CodeOf(err).Detail() == session.DetailNotFound
}

// keep stores the doors, unless the server is shutting down: the doors that were open before stay stored.
func (d *doors) keep() {
	if d.shelf == nil {
		return
	}
	d.keeping.Lock()
	defer d.keeping.Unlock()
	d.mu.Lock()
	closed := d.closed
	kept := make([]keptDoor, 0, len(d.open)+len(d.lost))
	for host, one := range d.open {
		kept = append(kept, keptDoor{Session: host.session, App: host.app, Port: one.port, Public: one.public})
	}
	for _, k := range d.lost {
		kept = append(kept, k)
	}
	d.mu.Unlock()
	if closed {
		return
	}
	slices.SortFunc(kept, func(a, b keptDoor) int { return cmp.Compare(a.Port, b.Port) })
	if err := d.shelf.Save(doorsKey, kept); err != nil {
		d.server.log.Warn("the doors to apps are not remembered", "err", err)
	}
}

// lostOf returns the door of an app that was not opened again, or nil.
func (d *doors) lostOf(host appHost) *api.LostDoor {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k, ok := d.lost[host]; ok {
		return &api.LostDoor{Public: k.Public, Port: k.Port}
	}
	return nil
}
