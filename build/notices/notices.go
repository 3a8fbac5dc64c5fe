// Package notices has the licences of what Slipway is made of. [Text] is written by build/notices/gen.
package notices

import _ "embed"

// Text names every work of others that the programs and the page contain, with its version, where it comes from and its
// licence.
//
//go:embed THIRD_PARTY_NOTICES
var Text string
