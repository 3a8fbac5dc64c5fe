package server

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
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

// events follows the hub's stream over a WebSocket. A client that does not take
// a message within writeMost is dropped; it comes back with its cursor.
func (s eventRoutes) events(w http.ResponseWriter, r *http.Request) error {
	cursor := hub.Cursor{Epoch: r.FormValue("epoch")}
	if text := r.FormValue("after"); text != "" {
		var err error
		if cursor.Seq, err = strconv.ParseUint(text, 10, 64); err != nil {
			return badQuery("after", "after is the seq of the last event seen.",
				"Write a whole number, or leave it out.")
		}
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
	watcher := s.hub.Watch(cursor, shell)
	defer watcher.Close()
	go conn.discard()
	s.sendEvents(ctx, conn, watcher)
	return nil
}

func (s eventRoutes) sendEvents(ctx context.Context, conn *socket, watcher *hub.Watcher) {
	for {
		event, err := watcher.Next(ctx)
		if err != nil {
			_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseGoingAway, ""),
				time.Now().Add(time.Second))
			return
		}
		text, err := json.Marshal(complete(event))
		if err != nil {
			s.log.Error("an event cannot be written", "error", err)
			return
		}
		if conn.hurry() != nil || conn.WriteMessage(websocket.TextMessage, text) != nil {
			return
		}
	}
}
