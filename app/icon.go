//go:build desktop

package app

import _ "embed"

//go:embed icon.png
var icon []byte
