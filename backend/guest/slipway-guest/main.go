// Command slipway-guest is the program inside every container. See package guest.
package main

import (
	"os"

	"slipway/backend/guest"
)

func main() { os.Exit(guest.Main(os.Args[1:])) }
