//go:build desktop

package app

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/wailsapp/wails/v2/pkg/runtime"
)

// drop is what the page learns about files that were dropped onto the window.
type drop struct {
	Path    string `json:"path,omitempty"`    // of a directory
	Unnamed bool   `json:"unnamed,omitempty"` // a directory with a path that no text can carry
}

// readDrop returns the directory that was dropped, or an empty drop if it was anything else. Wails splits the paths at
// line ends, which a path may contain. Paths that are not local, such as a file manager's trash, arrive as "".
func readDrop(paths []string) drop {
	path := strings.Join(paths, "\n")
	info, err := os.Stat(path)
	switch {
	case err != nil || !info.IsDir() || !filepath.IsAbs(path):
		return drop{}
	case !utf8.ValidString(path):
		return drop{Unnamed: true}
	}
	return drop{Path: filepath.Clean(path)}
}

// dropped hands what was dropped to the page, which has received the drop as well, knows whether one of its parts has
// taken it, and asks before anything happens.
func (s *shell) dropped(_, _ int, paths []string) {
	detail, _ := json.Marshal(readDrop(paths)) // text and a flag cannot fail
	runtime.WindowExecJS(s.ctx(), "window.dispatchEvent(new CustomEvent('slipway:drop',{detail:"+string(detail)+"}))")
}

// dropOrigins returns the origins that may send messages to Wails. WebView2 gives the paths of a drop only to a page
// that sends it on; the others give them to the window. Nothing is bound that such a page could call.
func dropOrigins(system, page string) string {
	if system == "windows" {
		return page
	}
	return ""
}
