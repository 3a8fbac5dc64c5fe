//go:build linux

package backend

import (
	"testing"

	"slipway/gpu/nvml"
)

func TestTheProgramIsItsOwnReaderOfDevices(t *testing.T) {
	if code := Main([]string{nvml.ChildCommand, "-no-such-option"}, Pages{}); code != 2 {
		t.Errorf("the reader answered an option that it does not know with %d; the command line took it", code)
	}
}
