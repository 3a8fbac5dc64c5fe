package files

import (
	"os"
	"syscall"
)

// startWriting is SYNC_FILE_RANGE_WRITE: begin, and do not wait.
const startWriting = 2

// beginWriting has the disk begin to write a part of a file. Whoever syncs the file later waits for the less.
func beginWriting(file *os.File, from, length int64) {
	// a file system that cannot writes when it is synced
	_ = syscall.SyncFileRange(int(file.Fd()), from, length, startWriting)
}
