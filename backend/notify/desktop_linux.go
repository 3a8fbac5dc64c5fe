package notify

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/godbus/dbus/v5"

	"slipway/backend/session"
)

// Desktop shows notices by org.freedesktop.Notifications on the session bus. It is safe for concurrent use.
type Desktop struct {
	address string // "": there is no bus

	mu    sync.Mutex // guards the fields below
	conn  *dbus.Conn
	shown map[session.ID]uint32 // a later notice of a session replaces the earlier one
}

// HasBus reports whether there is a session bus, which keyrings need as well. env is os.Getenv if nil.
func HasBus(env func(string) string) bool {
	if env == nil {
		env = os.Getenv
	}
	return busAddress(env) != ""
}

// NewDesktop finds the session bus by the environment, but does not start one. env is os.Getenv if nil.
func NewDesktop(env func(string) string) *Desktop {
	if env == nil {
		env = os.Getenv
	}
	return &Desktop{address: busAddress(env), shown: map[session.ID]uint32{}}
}

func busAddress(env func(string) string) string {
	if address := env("DBUS_SESSION_BUS_ADDRESS"); address != "" && address != "autolaunch:" {
		return address
	}
	runtime := env("XDG_RUNTIME_DIR")
	if runtime == "" {
		runtime = "/run/user/" + strconv.Itoa(os.Getuid())
	}
	path := filepath.Join(runtime, "bus")
	if info, err := os.Stat(path); err == nil && info.Mode().Type() == os.ModeSocket {
		return "unix:path=" + path
	}
	return ""
}

const (
	service = "org.freedesktop.Notifications"
	object  = dbus.ObjectPath("/org/freedesktop/Notifications")
)

// Available reports whether this desktop shows notices.
func (d *Desktop) Available(ctx context.Context) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	conn, err := d.connect(ctx)
	if err != nil {
		return false
	}
	var owned bool
	if err := conn.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.NameHasOwner", 0, service).
		Store(&owned); err != nil {
		return false
	}
	if owned {
		return true
	}
	var names []string // of services that are started on demand
	if err := conn.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.ListActivatableNames", 0).
		Store(&names); err != nil {
		return false
	}
	return slices.Contains(names, service)
}

// Urgency levels of the specification.
const (
	normal   = byte(1)
	critical = byte(2)
)

// Show shows a notice, in place of an earlier one of the same session. It fails with server_request_unavailable.
func (d *Desktop) Show(ctx context.Context, n Notice) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	conn, err := d.connect(ctx)
	if err != nil {
		return unavailable(err)
	}
	urgency := normal
	if n.Urgent {
		urgency = critical
	}
	hints := map[string]dbus.Variant{"urgency": dbus.MakeVariant(urgency), "desktop-entry": dbus.MakeVariant("slipway")}
	// The desktop may interpret markup in the text.
	text := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(n.Text)
	var id uint32
	call := conn.Object(service, object).CallWithContext(ctx, service+".Notify", 0, "Slipway", d.shown[n.Session],
		"slipway", n.Title, text, []string{}, hints, int32(-1))
	if err := call.Store(&id); err != nil {
		return unavailable(err)
	}
	d.shown[n.Session] = id
	return nil
}

// connect connects to the bus, again if the connection was lost. It needs mu.
func (d *Desktop) connect(ctx context.Context) (*dbus.Conn, error) {
	if d.address == "" {
		return nil, os.ErrNotExist
	}
	if d.conn != nil && d.conn.Connected() {
		return d.conn, nil
	}
	// The connection outlives ctx, which limits only the time for the greeting.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	greeted := context.AfterFunc(ctx, end)
	conn, err := dbus.Connect(d.address, dbus.WithContext(life))
	if !greeted() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		end()
		return nil, err
	}
	d.conn = conn
	return conn, nil
}

// Close closes the connection to the bus.
func (d *Desktop) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn == nil {
		return nil
	}
	return d.conn.Close()
}
