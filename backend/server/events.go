package server

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"github.com/gorilla/websocket"

	"slipway/backend/api/route"
	"slipway/backend/hub"
)

// eventRoutes are the routes of events.
type eventRoutes struct {
	hub     *hub.Hub
	log     *slog.Logger
	sockets *sockets
}

func (s eventRoutes) mount(m *mounts) {
	m.stream(route.Events.Endpoint, s.events)
}

// events sends the events of the hub over a WebSocket. A client that does not take a message within writeMost is
// disconnected and reconnects with its cursor.
func (s eventRoutes) events(w http.ResponseWriter, r *http.Request) error {
	after, err := offsetIn(r, "after")
	if err != nil {
		return err
	}
	shell, err := flagIn(r, "shell")
	if err != nil {
		return err
	}
	conn, ctx, err := s.sockets.upgrade(w, r, false)
	if conn == nil {
		return err
	}
	defer conn.cancel()
	watcher := s.hub.Watch(hub.Cursor{Epoch: r.FormValue("epoch"), Seq: after}, shell)
	defer watcher.Close()
	go conn.discard()
	for {
		event, err := watcher.Next(ctx)
		if err != nil {
			_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseGoingAway, ""),
				time.Now().Add(time.Second))
			return nil
		}
		text, err := json.Marshal(complete(event))
		if err != nil {
			s.log.Error("an event cannot be written", "error", err)
			return nil
		}
		if conn.hurry() != nil || conn.WriteMessage(websocket.TextMessage, text) != nil {
			return nil
		}
	}
}
