//go:build !desktop

package app

// runWindowed handles nothing: this build has no window.
func runWindowed([]string) (code int, handled bool) { return 0, false }
