package daemon

import (
	"fmt"
	"os"
)

// descriptorPath names an entry of an open folder without the folder's path.
func descriptorPath(folder *os.File, name string) (string, bool) {
	return fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), name), true
}
