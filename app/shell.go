//go:build desktop

package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"

	"github.com/wailsapp/wails/v2"
	"github.com/wailsapp/wails/v2/pkg/options"
	"github.com/wailsapp/wails/v2/pkg/options/assetserver"
	"github.com/wailsapp/wails/v2/pkg/runtime"

	"slipway/backend/api"
)

// shell is the main window and what belongs to it.
type shell struct {
	plane    *plane
	children children
	window   atomic.Pointer[context.Context] // what Wails hands to OnStartup; its functions need it
	log      *slog.Logger
	first    string // page that the window begins with; empty: the list of sessions
}

func newShell(plane *plane) *shell { return &shell{plane: plane, log: slog.Default()} }

// ctx is the context of the running window. It is called only after startup.
func (s *shell) ctx() context.Context { return *s.window.Load() }

func (s *shell) geometryPath() string { return s.plane.home.Join("window.json") }

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
		OnStartup: func(window context.Context) {
			s.window.Store(&window)
			if place.Known && !place.Maximised {
				runtime.WindowSetPosition(window, place.X, place.Y)
			}
			installWebViewHooks()
			go s.plane.follow(ctx, s.handle, func(err error) { s.log.Info("the event stream was lost", "error", err) })
		},
		OnBeforeClose:            s.beforeClose,
		EnableDefaultContextMenu: true,
	})
}

// firstPage answers the window's own origin with a step to a fresh one-time login, so that reloading it always works.
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

// handle has the window be as the settings say, and does what the control plane asks of a desktop shell.
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
	if err := s.children.start(event.URL, event.Title); err != nil {
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

// What closing the window does with the control plane while sessions live.
const (
	closeKeep = "keep"
	closeQuit = "quit"
)

const (
	answerKeep = "Yes"
	answerQuit = "No"
)

// beforeClose keeps the window's place and decides whether the control plane goes on. Sessions go on in either case. It
// never prevents the closing.
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
		if err := s.plane.shutdown(window); err != nil {
			s.log.Error("the control plane did not stop", "error", err)
		}
	}
	return false
}

// keepsControlPlane decides by the sessions that live and the person's choice, asking once and remembering the answer.
// A control plane that somebody else started is always kept.
func (s *shell) keepsControlPlane(ctx context.Context) (bool, error) {
	if !s.plane.Started {
		return true, nil
	}
	live, err := s.plane.liveSessions(ctx)
	if err != nil {
		return true, err
	}
	if len(live) == 0 {
		return false, nil
	}
	settings, err := s.plane.settings(ctx)
	if err != nil {
		return true, err
	}
	switch settings.CloseKeeps {
	case closeKeep:
		return true, nil
	case closeQuit:
		return false, nil
	}
	answer, err := runtime.MessageDialog(ctx, runtime.MessageDialogOptions{
		Type:  runtime.QuestionDialog,
		Title: "Keep Slipway running?",
		Message: fmt.Sprintf("%s still running and will go on in any case.\n\nKeep Slipway in the background, so "+
			"that the queue moves, "+
			"notebooks stay reachable and logs are collected?\n\nThe answer is remembered; change it in Settings.",
			countSessions(len(live))),
		Buttons:       []string{answerKeep, answerQuit},
		DefaultButton: answerKeep,
	})
	if err != nil {
		return true, err
	}
	settings.CloseKeeps = closeKeep
	if answer == answerQuit {
		settings.CloseKeeps = closeQuit
	}
	return settings.CloseKeeps == closeKeep, s.plane.saveSettings(ctx, settings)
}

func countSessions(n int) string {
	if n == 1 {
		return "One session is"
	}
	return fmt.Sprintf("%d sessions are", n)
}
