// Command slipway-guest is the program inside every container, see package guest, and the one that runs a container in
// a job of Slurm, see package node.
package main

import (
	"os"

	"slipway/backend/guest"
	"slipway/backend/guest/node"
)

func main() { os.Exit(guest.Main(os.Args[1:], node.Programs())) }
