//go:build desktop

package app

import (
	"os"
	"strings"
)

// prepareEnvironment sets what WebKitGTK reads before it starts.
//
// Under the locale C.UTF-8 the page's language is "C", which is no language and
// makes every number formatter throw. NVIDIA's driver may leave the window
// empty unless the DMA-BUF renderer is off.
func prepareEnvironment() {
	locale := firstOf(os.Getenv("LC_ALL"), os.Getenv("LC_MESSAGES"), os.Getenv("LANG"))
	if base, _, _ := strings.Cut(locale, "."); base == "" || base == "C" || base == "POSIX" {
		setenv("LC_ALL", "en_US.UTF-8")
	}
	if _, err := os.Stat("/proc/driver/nvidia/version"); err == nil &&
		os.Getenv("WEBKIT_DISABLE_DMABUF_RENDERER") == "" {
		setenv("WEBKIT_DISABLE_DMABUF_RENDERER", "1")
	}
}

func setenv(name, value string) {
	// Setenv fails only for malformed names, and these are constants.
	_ = os.Setenv(name, value)
}

func firstOf(values ...string) string {
	for _, value := range values {
		if value != "" {
			return value
		}
	}
	return ""
}
