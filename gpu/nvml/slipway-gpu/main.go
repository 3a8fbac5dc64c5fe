// Slipway-gpu is the reader of NVIDIA devices as a program of its own, for a Slipway that was built without C linkage
// and therefore runs on any Linux: it carries this program along and starts it where a driver is.
package main

import (
	"os"

	"slipway/gpu/nvml"
)

func main() {
	os.Exit(nvml.ChildMain(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
