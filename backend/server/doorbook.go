package server

import (
	"cmp"
	"context"
	"slices"

	"slipway/backend/api"
	"slipway/backend/session"
)

// Shelf stores documents by key. store.Shelf implements it.
type Shelf interface {
	Load(key string, v any) (bool, error)
	Save(key string, v any) error
}

const doorsKey = "server.doors"

// keptDoor is a stored door.
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
