// Slipway launches isolated compute sessions in containers and gives each one a terminal, notebooks, logs and an honest
// account of what it used.
package main

import (
	"os"

	"slipway/app"
	"slipway/backend"
	"slipway/frontend"
	"slipway/frontend/notebook"
)

func main() {
	os.Exit(app.Main(backend.Pages{Interface: frontend.Assets(), Notebook: notebook.Assets()}))
}
