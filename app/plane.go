//go:build desktop

package app

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/place"
	"slipway/backend/session"
)

// plane is the control plane as the window sees it.
type plane struct {
	place.Client
	home place.Home
}

// callTimeout bounds every request of the shell: all of them are answered from
// memory.
const callTimeout = 10 * time.Second

// connect finds the running control plane or starts one detached.
func connect(ctx context.Context, engine string) (*plane, error) {
	home, err := place.FindHome(nil)
	if err != nil {
		return nil, err
	}
	connection, err := home.ConnectOrStart(ctx, place.StartOptions{Engine: engine})
	if err != nil {
		return nil, err
	}
	client := connection.Client()
	client.HTTP.Timeout = callTimeout
	return &plane{Client: client, home: home}, nil
}

// call makes one request of the API. A person reads its error.
func (p *plane) call(ctx context.Context, method, path string, in, out any) error {
	err := p.Call(ctx, method, path, in, out)
	var refused *place.Refused
	var problem session.Error
	if errors.As(err, &refused) && json.Unmarshal(refused.Body, &problem) == nil && problem.Message != "" {
		return errors.New(problem.Message)
	}
	return err
}

// loginURL returns an address that logs the window in, once.
func (p *plane) loginURL(ctx context.Context) (string, error) {
	var link api.LoginLink
	err := p.call(ctx, http.MethodPost, "/api/v1/login", nil, &link)
	return link.URL, err
}

// showExisting asks a window that is already open to come to the front, with a
// page unless that is empty, and reports whether there is one.
func (p *plane) showExisting(ctx context.Context, page string) (bool, error) {
	var shown api.Shown
	err := p.call(ctx, http.MethodPost, "/api/v1/window", api.WindowRequest{Path: page}, &shown)
	return shown.Shown, err
}

// settings reads the person's settings, change writes them.
func (p *plane) settings(ctx context.Context) (hub.Settings, error) {
	var settings hub.Settings
	err := p.call(ctx, http.MethodGet, "/api/v1/settings", nil, &settings)
	return settings, err
}

func (p *plane) saveSettings(ctx context.Context, settings hub.Settings) error {
	return p.call(ctx, http.MethodPut, "/api/v1/settings", settings, nil)
}

// liveSessions returns the sessions that have not ended.
func (p *plane) liveSessions(ctx context.Context) ([]api.Session, error) {
	var sessions []api.Session
	err := p.call(ctx, http.MethodGet, "/api/v1/sessions?state=live", nil, &sessions)
	return sessions, err
}

// shutdown stops the control plane. Sessions go on.
func (p *plane) shutdown(ctx context.Context) error {
	return p.call(ctx, http.MethodPost, "/api/v1/shutdown", nil, nil)
}

// follow calls fn for every event until ctx ends, connecting again when
// the stream breaks. lost is called each time it does.
func (p *plane) follow(ctx context.Context, fn func(api.Event), lost func(error)) {
	const pause = time.Second
	var last api.Event
	for ctx.Err() == nil {
		lost(p.followOnce(ctx, &last, fn))
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func (p *plane) followOnce(ctx context.Context, last *api.Event, fn func(api.Event)) error {
	address := "ws" + strings.TrimPrefix(p.URL, "http") + "/api/v1/events?shell=1&epoch=" + last.Epoch +
		"&after=" + strconv.FormatUint(last.Seq, 10)
	conn, response, err := websocket.DefaultDialer.DialContext(ctx, address, p.Header())
	if err != nil {
		return err
	}
	response.Body.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	defer conn.Close()
	for {
		var event api.Event
		if err := conn.ReadJSON(&event); err != nil {
			return err
		}
		last.Epoch, last.Seq = event.Epoch, event.Seq
		fn(event)
	}
}
