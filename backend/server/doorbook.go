package server

import (
	"cmp"
	"context"
	"slices"

	"slipway/backend/api"
	"slipway/backend/session"
)

// Shelf keeps documents by key over a restart; store.Shelf is one.
type Shelf interface {
	Load(key string, v any) (bool, error)
	Save(key string, v any) error
}

const doorsKey = "server.doors"

// keptDoor is what is remembered of a door when the server ends.
type keptDoor struct {
	Session session.ID `json:"session"`
	App     string     `json:"app"`
	Port    int        `json:"port"`
	Public  bool       `json:"public"`
}

func (k keptDoor) host() appHost { return appHost{app: k.App, session: k.Session} }

// restore opens the doors again that were open when the server ended, each on its
// own port. One that was open to everybody stays shut, and one whose port is
// taken does; both are told until somebody opens or dismisses them.
func (d *doors) restore(ctx context.Context) {
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
		go d.forgetEnded(ctx, k.host())
	}
}

// forgetEnded forgets a door that stayed shut where its session is no more.
func (d *doors) forgetEnded(ctx context.Context, host appHost) {
	if d.ended(ctx, host) {
		d.shut(host)
	}
}

// ended tells whether a session surely needs no door any more.
func (d *doors) ended(ctx context.Context, host appHost) bool {
	s, err := d.server.apps.sessionOf(ctx, host)
	return err == nil && s.Status.Terminal() || session.CodeOf(err).Detail() == session.DetailNotFound
}

// keep remembers the doors as they are. It does nothing once the server ends:
// what was open then is what is remembered.
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

// lostOf tells of the door of an app that stayed shut; nil where none did.
func (d *doors) lostOf(host appHost) *api.LostDoor {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k, ok := d.lost[host]; ok {
		return &api.LostDoor{Public: k.Public, Port: k.Port}
	}
	return nil
}
