//go:build desktop

package app

import (
	"cmp"
	"os"
	"strings"
)

// prepareEnvironment sets what WebKitGTK reads before it starts.
//
// Under the locale C.UTF-8 the page's language is "C", which is no language and makes every number formatter throw.
// NVIDIA's driver may leave the window empty unless the DMA-BUF renderer is off.
func prepareEnvironment() {
	locale := cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_MESSAGES"), os.Getenv("LANG"))
	if base, _, _ := strings.Cut(locale, "."); base == "" || base == "C" || base == "POSIX" {
		_ = os.Setenv("LC_ALL", "en_US.UTF-8") // fails only for malformed names, here and below
	}
	if _, err := os.Stat("/proc/driver/nvidia/version"); err == nil &&
		os.Getenv("WEBKIT_DISABLE_DMABUF_RENDERER") == "" {
		_ = os.Setenv("WEBKIT_DISABLE_DMABUF_RENDERER", "1")
	}
}
