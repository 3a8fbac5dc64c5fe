//go:build desktop

package app

import (
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	goruntime "runtime"
	"sync/atomic"

	"github.com/moby/sys/atomicwriter"
	"github.com/wailsapp/wails/v2"
	"github.com/wailsapp/wails/v2/pkg/options"
	"github.com/wailsapp/wails/v2/pkg/options/assetserver"
	"github.com/wailsapp/wails/v2/pkg/runtime"

	"slipway/backend/api"
	"slipway/backend/api/route"
)

// shell is the main window.
type shell struct {
	plane  *plane
	window atomic.Pointer[context.Context] // from OnStartup, for the functions of Wails
	log    *slog.Logger
	first  string // first page; empty: the list of sessions
}

// ctx returns the context of the window, after its start.
func (s *shell) ctx() context.Context { return *s.window.Load() }

func (s *shell) geometryPath() string { return s.plane.home.Join("window.json") }

// geometry is the position and size of the main window when it was closed, in pixels.
type geometry struct {
	X         int  `json:"x"`
	Y         int  `json:"y"`
	Width     int  `json:"width"`
	Height    int  `json:"height"`
	Maximised bool `json:"maximised"`
	Known     bool `json:"known"` // X and Y come from an earlier run
}

const (
	defaultWidth, defaultHeight = 1280, 800
	minWidth, minHeight         = 900, 600
)

// loadGeometry reads the geometry in a file. It returns the default for a missing or damaged file.
func loadGeometry(path string) geometry {
	var g geometry
	data, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(data, &g) != nil || g.Width < minWidth || g.Height < minHeight {
		return geometry{Width: defaultWidth, Height: defaultHeight}
	}
	return g
}

// saveGeometry writes the geometry of the window to a file.
func saveGeometry(ctx context.Context, path string) error {
	g := geometry{Known: true, Maximised: runtime.WindowIsMaximised(ctx)}
	g.X, g.Y = runtime.WindowGetPosition(ctx)
	g.Width, g.Height = runtime.WindowGetSize(ctx)
	data, err := json.Marshal(g)
	if err != nil {
		return err
	}
	return atomicwriter.WriteFile(path, data, 0o600)
}

// run shows the window and returns when it is closed.
func (s *shell) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	place := loadGeometry(s.geometryPath())
	start := options.Normal
	if place.Maximised {
		start = options.Maximised
	}
	return wails.Run(&options.App{
		Title:            "Slipway",
		Width:            place.Width,
		Height:           place.Height,
		MinWidth:         minWidth,
		MinHeight:        minHeight,
		WindowStartState: start,
		BackgroundColour: options.NewRGB(246, 248, 250),
		Menu:             s.menu(),
		AssetServer:      &assetserver.Options{Handler: http.HandlerFunc(s.firstPage)},
		Linux:            linuxOptions(),
		DragAndDrop:      &options.DragAndDrop{EnableFileDrop: true},

		BindingsAllowedOrigins: dropOrigins(goruntime.GOOS, s.plane.URL),
		OnStartup: func(window context.Context) {
			s.window.Store(&window)
			if place.Known && !place.Maximised {
				runtime.WindowSetPosition(window, place.X, place.Y)
			}
			installWebViewHooks()
			runtime.OnFileDrop(window, s.dropped)
			go s.plane.follow(ctx, s.handle, func(err error) { s.log.Info("the event stream was lost", "error", err) })
		},
		OnBeforeClose:            s.beforeClose,
		EnableDefaultContextMenu: true,
	})
}

// stubPage is the only page of the window's own origin: the background colours, so that nothing flashes, and a redirect
// to the user interface.
var stubPage = template.Must(template.New("stub").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Slipway</title>
<style>html{background:#f6f8fa}@media(prefers-color-scheme:dark){html{background:#0f1419}}</style></head>
<body><script>location.replace({{.}})</script></body></html>
`))

// stub serves the page that redirects to target.
func stub(target string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		if err := stubPage.Execute(w, target); err != nil {
			http.Error(w, "the first page could not be written", http.StatusInternalServerError)
		}
	})
}

// firstPage redirects to a new one-time login, so that a reload of the first page always works.
func (s *shell) firstPage(w http.ResponseWriter, r *http.Request) {
	address, err := s.plane.loginURL(r.Context())
	if err != nil {
		http.Error(w, "Slipway's control plane does not answer: "+err.Error(), http.StatusBadGateway)
		return
	}
	if s.first != "" {
		address += "&next=" + url.QueryEscape(s.first)
	}
	stub(address).ServeHTTP(w, r)
}

// handle applies settings and handles requests of the control plane.
func (s *shell) handle(event api.Event) {
	switch {
	case event.Snapshot != nil:
		zoomWebViews(event.Snapshot.Settings.Zoom)
	case event.Settings != nil:
		zoomWebViews(event.Settings.Zoom)
	case event.Window != nil:
		s.showWindow(*event.Window)
	}
}

// showWindow opens the window of an app, or brings the main one to the front.
func (s *shell) showWindow(event api.Window) {
	if event.URL == "" {
		runtime.WindowUnminimise(s.ctx())
		runtime.WindowShow(s.ctx())
		if event.Path != "" {
			s.show(event.Path)
		}
		return
	}
	if err := startChild(event.URL, event.Title); err != nil {
		s.log.Error("an app window could not be opened", "title", event.Title, "error", err)
		runtime.BrowserOpenURL(s.ctx(), event.URL)
	}
}

func (s *shell) openInBrowser() {
	address, err := s.plane.loginURL(s.ctx())
	if err != nil {
		s.log.Error("no login address for the browser", "error", err)
		return
	}
	runtime.BrowserOpenURL(s.ctx(), address)
}

// beforeClose saves the geometry and may stop the control plane. Sessions keep running in any case. It never prevents
// the closing.
func (s *shell) beforeClose(window context.Context) (prevent bool) {
	if err := saveGeometry(window, s.geometryPath()); err != nil {
		s.log.Error("the window's place could not be kept", "error", err)
	}
	keep, err := s.keepsControlPlane(window)
	if err != nil {
		s.log.Error("the control plane was left as it is", "error", err)
		return false
	}
	if !keep {
		if _, err := route.Shutdown.Ask(window, s.plane); err != nil {
			s.log.Error("the control plane did not stop", "error", err)
		}
	}
	return false
}

// keepsControlPlane decides by the live sessions and the setting, which it asks for once and saves. It always keeps a
// control plane that this app did not start.
func (s *shell) keepsControlPlane(ctx context.Context) (bool, error) {
	if !s.plane.Started {
		return true, nil
	}
	live, err := route.Sessions.With("state", "live").Ask(ctx, s.plane)
	if err != nil {
		return true, err
	}
	if len(live) == 0 {
		return false, nil
	}
	settings, err := route.Settings.Ask(ctx, s.plane)
	if err != nil {
		return true, err
	}
	const keep, quit = "keep", "quit"
	if settings.CloseKeeps == keep || settings.CloseKeeps == quit {
		return settings.CloseKeeps == keep, nil
	}
	const yes, no = "Yes", "No"
	running := "One session is"
	if len(live) > 1 {
		running = fmt.Sprintf("%d sessions are", len(live))
	}
	answer, err := runtime.MessageDialog(ctx, runtime.MessageDialogOptions{
		Type:  runtime.QuestionDialog,
		Title: "Keep Slipway running?",
		Message: running + " still running and will keep running.\n\nKeep Slipway in the background, so that " +
			"the queue moves, notebooks stay reachable and logs are collected?\n\nSlipway remembers the " +
			"answer. You can change it in Settings.",
		Buttons:       []string{yes, no},
		DefaultButton: yes,
	})
	if err != nil {
		return true, err
	}
	settings.CloseKeeps = keep
	if answer == no {
		settings.CloseKeeps = quit
	}
	_, err = route.SettingsUpdate.Body(settings).Ask(ctx, s.plane)
	return answer != no, err
}
