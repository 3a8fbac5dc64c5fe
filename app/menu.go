//go:build desktop

package app

import (
	"github.com/wailsapp/wails/v2/pkg/menu"
	"github.com/wailsapp/wails/v2/pkg/menu/keys"
	"github.com/wailsapp/wails/v2/pkg/runtime"
)

// menu builds the menu of the main window. Each entry only goes to a place of the page or does what the window itself
// can.
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
	view.AddText("Zoom in", keys.CmdOrCtrl("="), func(*menu.CallbackData) { s.zoom(larger) })
	view.AddText("Zoom out", keys.CmdOrCtrl("-"), func(*menu.CallbackData) { s.zoom(smaller) })
	view.AddText("Actual size", keys.CmdOrCtrl("0"), func(*menu.CallbackData) { s.zoom(actual) })
	view.AddText("Full screen", keys.Key("f11"), func(*menu.CallbackData) { s.toggleFullscreen() })

	help := bar.AddSubmenu("Help")
	help.AddText("Check this machine", nil, s.goTo("/settings?section=doctor"))
	help.AddText("Open in browser", nil, func(*menu.CallbackData) { s.openInBrowser() })
	return bar
}

// goTo returns a menu callback that shows a place of the page.
func (s *shell) goTo(path string) menu.Callback {
	return func(*menu.CallbackData) { s.show(path) }
}

// show shows a place of the page. The page listens for the event and moves without loading anew; a page that does not
// is loaded there.
func (s *shell) show(path string) {
	script := "if(window.dispatchEvent(new CustomEvent('slipway:go',{detail:" + quoteJS(path) +
		",cancelable:true})))location.assign(" + quoteJS(path) + ")"
	runtime.WindowExecJS(s.ctx(), script)
}

func (s *shell) toggleFullscreen() {
	if runtime.WindowIsFullscreen(s.ctx()) {
		runtime.WindowUnfullscreen(s.ctx())
		return
	}
	runtime.WindowFullscreen(s.ctx())
}
