package guest

import (
	"testing"

	"slipway/backend/engine"
)

// The file system of a mount has another number on another computer, so what
// runs there is given none to compare.
func TestWhatIsMountedIsKnownByItsInodeWhereItsDeviceDiffers(t *testing.T) {
	dir := t.TempDir()
	stat, err := lookAt(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		pin   engine.Pin
		sound bool
	}{
		"the same":                   {engine.Pin{Target: dir, Device: stat.Dev, Inode: stat.Ino}, true},
		"another device":             {engine.Pin{Target: dir, Device: stat.Dev + 1, Inode: stat.Ino}, false},
		"no device":                  {engine.Pin{Target: dir, Inode: stat.Ino}, true},
		"no device, another inode":   {engine.Pin{Target: dir, Inode: stat.Ino + 1}, false},
		"the device, another inode":  {engine.Pin{Target: dir, Device: stat.Dev, Inode: stat.Ino + 1}, false},
		"a directory that is not it": {engine.Pin{Target: dir + "/none", Inode: stat.Ino}, false},
	} {
		if err := checkPins([]engine.Pin{c.pin}); (err == nil) != c.sound {
			t.Errorf("%s: %v", name, err)
		}
	}
}
