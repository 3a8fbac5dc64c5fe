//go:build desktop

package app

import (
	"path/filepath"

	"github.com/wailsapp/wails/v2/pkg/options/linux"
)

// linuxOptions chooses hardware acceleration only where there is hardware: on software rendering the plain way scrolls
// better.
func linuxOptions() *linux.Options {
	// In Wails 2.15 the first policy means "always"; see the package's issue 2977.
	policy := linux.WebviewGpuPolicyOnDemand
	if nodes, err := filepath.Glob("/dev/dri/renderD*"); err != nil || len(nodes) == 0 {
		policy = linux.WebviewGpuPolicyNever
	}
	return &linux.Options{Icon: icon, WebviewGpuPolicy: policy, ProgramName: "slipway"}
}
