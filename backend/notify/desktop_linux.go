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

// Desktop shows notices by org.freedesktop.Notifications on the person's session bus. It is safe for concurrent use.
type Desktop struct {
	address string // "": there is no bus

	mu    sync.Mutex // guards what follows
	conn  *dbus.Conn
	shown map[session.ID]uint32 // a later notice of a session replaces the earlier one
}

// NewDesktop finds the session bus by the environment; env is os.Getenv if nil. It starts none.
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
	if path := filepath.Join(runtime, "bus"); isSocket(path) {
		return "unix:path=" + path
	}
	return ""
}

func isSocket(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().Type() == os.ModeSocket
}

const (
	service = "org.freedesktop.Notifications"
	object  = dbus.ObjectPath("/org/freedesktop/Notifications")
)

// Available tells whether somebody on this desktop shows notices.
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
	var names []string // one that is started when it is called
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
	// The text may be markup to whoever shows it.
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

func unavailable(err error) error {
	return &session.Error{Code: session.CodeServerUnavailable, Message: "The desktop shows no notifications.",
		Hint: "A browser may show them instead: allow it on the Settings page.", Err: err}
}

// connect needs mu. A bus that went away is dialled again.
func (d *Desktop) connect(ctx context.Context) (*dbus.Conn, error) {
	if d.address == "" {
		return nil, os.ErrNotExist
	}
	if d.conn != nil && d.conn.Connected() {
		return d.conn, nil
	}
	// The connection outlives ctx, but a bus that does not answer the greeting is not waited for longer than ctx lasts.
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

// Close leaves the bus.
func (d *Desktop) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn == nil {
		return nil
	}
	return d.conn.Close()
}
