package place

import "io/fs"

// ownedByUs reports true: the folders of a home have no other owner here.
func ownedByUs(fs.FileInfo) bool { return true }
