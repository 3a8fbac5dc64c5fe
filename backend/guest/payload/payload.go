// Package payload holds the built guest, one static binary for each architecture that containers may have. `make guest`
// builds them; a checkout holds none.
package payload

import (
	"embed"
	"fmt"
)

//go:embed all:bin
var bin embed.FS

// Binary returns the guest for a Go architecture name, "amd64" or "arm64". The caller must not change it.
func Binary(arch string) ([]byte, error) {
	name := "bin/slipway-guest-linux-" + arch
	data, err := bin.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("this build holds no guest for linux/%s: run `make guest` and build again: %w", arch,
			err)
	}
	return data, nil
}
