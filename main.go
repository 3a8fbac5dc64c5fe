// Slipway launches isolated compute sessions in containers and gives each one a
// terminal, notebooks, logs and an honest account of what it used.
package main

import (
	"os"

	"slipway/app"
	"slipway/frontend"
)

func main() {
	os.Exit(app.Main(frontend.Assets()))
}
