//go:build desktop

package app

import (
	"encoding/json"
	"slices"

	"github.com/wailsapp/wails/v2/pkg/menu"
	"github.com/wailsapp/wails/v2/pkg/menu/keys"
	"github.com/wailsapp/wails/v2/pkg/runtime"

	"slipway/backend/api/route"
)

// menu returns the menu of the main window.
func (s *shell) menu() *menu.Menu {
	bar := menu.NewMenu()

	file := bar.AddSubmenu("File")
	file.AddText("New session", keys.CmdOrCtrl("n"), s.goTo("/launcher"))
	file.AddText("Settings", keys.CmdOrCtrl(","), s.goTo("/settings"))
	file.AddSeparator()
	file.AddText("Close window", keys.CmdOrCtrl("w"), func(*menu.CallbackData) { runtime.Quit(s.ctx()) })

	view := bar.AddSubmenu("View")
	view.AddText("Sessions", keys.CmdOrCtrl("1"), s.goTo("/sessions"))
	view.AddText("Launcher", keys.CmdOrCtrl("2"), s.goTo("/launcher"))
	view.AddSeparator()
	view.AddText("Reload", keys.CmdOrCtrl("r"),
		func(*menu.CallbackData) { runtime.WindowExecJS(s.ctx(), "location.reload()") })
	view.AddText("Zoom in", keys.CmdOrCtrl("="), func(*menu.CallbackData) { s.zoom(1) })
	view.AddText("Zoom out", keys.CmdOrCtrl("-"), func(*menu.CallbackData) { s.zoom(-1) })
	view.AddText("Actual size", keys.CmdOrCtrl("0"), func(*menu.CallbackData) { s.zoom(0) })
	view.AddText("Full screen", keys.Key("f11"), func(*menu.CallbackData) { s.toggleFullscreen() })

	help := bar.AddSubmenu("Help")
	help.AddText("Check this machine", nil, s.goTo("/settings?section=doctor"))
	help.AddText("Open in browser", nil, func(*menu.CallbackData) { s.openInBrowser() })
	return bar
}

// goTo returns a menu callback that shows a page of the user interface.
func (s *shell) goTo(path string) menu.Callback {
	return func(*menu.CallbackData) { s.show(path) }
}

// show shows a page of the user interface. The interface handles an event without a reload; else the page is loaded.
func (s *shell) show(path string) {
	quoted, _ := json.Marshal(path) // a string cannot fail
	runtime.WindowExecJS(s.ctx(), "if(window.dispatchEvent(new CustomEvent('slipway:go',{detail:"+string(quoted)+
		",cancelable:true})))location.assign("+string(quoted)+")")
}

func (s *shell) toggleFullscreen() {
	if runtime.WindowIsFullscreen(s.ctx()) {
		runtime.WindowUnfullscreen(s.ctx())
		return
	}
	runtime.WindowFullscreen(s.ctx())
}

// zooms are the sizes in the menu, in percent. The setting may be any between the first and the last.
var zooms = []int{80, 90, 100, 110, 125, 150, 175, 200}

// zoomed returns the size that is step sizes above percent, or 100 for step 0.
func zoomed(percent, step int) int {
	if step == 0 {
		return 100
	}
	at, found := slices.BinarySearch(zooms, percent)
	if step > 0 && !found {
		at-- // percent is between the size before and the one at this index
	}
	return zooms[min(max(at+step, 0), len(zooms)-1)]
}

// zoom changes the setting. The window changes when it receives the event of the new setting.
func (s *shell) zoom(step int) {
	settings, err := route.Settings.Ask(s.ctx(), s.plane)
	if err == nil {
		settings.Zoom = zoomed(settings.Zoom, step)
		_, err = route.SettingsUpdate.Body(settings).Ask(s.ctx(), s.plane)
	}
	if err != nil {
		s.log.Error("the zoom was not changed", "error", err)
	}
}
