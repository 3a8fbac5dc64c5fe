//go:build desktop

package app

import (
	"context"
	"encoding/json"
	"os"

	"github.com/moby/sys/atomicwriter"
	"github.com/wailsapp/wails/v2/pkg/runtime"
)

// geometry is where the main window stood when it was closed, in pixels.
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

// loadGeometry reads the geometry kept at path. A missing or damaged file gives the default: a window in the wrong
// place is not worth an error.
func loadGeometry(path string) geometry {
	fallback := geometry{Width: defaultWidth, Height: defaultHeight}
	data, err := os.ReadFile(path)
	if err != nil {
		return fallback
	}
	var g geometry
	if json.Unmarshal(data, &g) != nil || g.Width < minWidth || g.Height < minHeight {
		return fallback
	}
	return g
}

// saveGeometry keeps where the window stands now.
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
