package warm

import (
	"os"
	"path/filepath"
	"strings"
)

// PowerSupplies is where Linux describes what a machine gets its power from.
const PowerSupplies = "/sys/class/power_supply"

// OnBattery reports whether a machine has a mains connection that gives no power. One without any is a desktop, a
// server, or no Linux. The folder is [PowerSupplies].
func OnBattery(folder string) bool {
	supplies, _ := filepath.Glob(filepath.Join(folder, "*")) // fails only for a bad pattern
	plugs := 0
	for _, supply := range supplies {
		if read(supply, "type") != "Mains" {
			continue
		}
		plugs++
		if read(supply, "online") == "1" {
			return false
		}
	}
	return plugs > 0
}

func read(supply, name string) string {
	text, _ := os.ReadFile(filepath.Join(supply, name)) // "" of what is not there
	return strings.TrimSpace(string(text))
}
