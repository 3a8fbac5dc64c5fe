//go:build desktop

package app

import "slices"

// zooms are the sizes that the menu goes through, in percent; the setting may be any between the first and the last.
var zooms = []int{80, 90, 100, 110, 125, 150, 175, 200}

// larger is the next size up.
func larger(percent int) int {
	if at := slices.IndexFunc(zooms, func(z int) bool { return z > percent }); at >= 0 {
		return zooms[at]
	}
	return zooms[len(zooms)-1]
}

// smaller is the next size down.
func smaller(percent int) int {
	below := zooms[0]
	for _, z := range zooms {
		if z < percent {
			below = z
		}
	}
	return below
}

// actual is the size without zoom.
func actual(int) int { const full = 100; return full }

// zoom changes the setting, which the window follows.
func (s *shell) zoom(next func(percent int) int) {
	settings, err := s.plane.settings(s.ctx())
	if err == nil {
		settings.Zoom = next(settings.Zoom)
		err = s.plane.saveSettings(s.ctx(), settings)
	}
	if err != nil {
		s.log.Error("the zoom was not changed", "error", err)
	}
}
