//go:build !linux || !cgo

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "gpuprobe: build this program on Linux with a C compiler (CGO_ENABLED=1)")
	os.Exit(1)
}
