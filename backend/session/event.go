package session

// Event is one change in an agent's world. One of the pointers is set, or none
// where a later event tells the same anew: samples and devices are not kept.
//
// Seq grows by one with each event of one Epoch, the run of an agent process;
// who may not see every session misses some of the numbers.
// A watcher that knows (Epoch, Seq) resumes after it; one that knows nothing,
// or another epoch, or a Seq too old to be kept, first receives Reset.
type Event struct {
	Epoch   string   `json:"epoch"`
	Seq     uint64   `json:"seq"`
	Reset   *Reset   `json:"reset,omitempty"`
	Session *Session `json:"session,omitempty"` // the session as it is now
	Removed *ID      `json:"removed,omitempty"` // the record was purged
	Owner   string   `json:"owner,omitempty"`   // of the session removed
	Usage   []Usage  `json:"usage,omitempty"`   // newest samples of live sessions; dull: only the last matters
	Machine *Machine `json:"machine,omitempty"` // the machine's resources or warnings changed

	// Devices is the board after every sample of the devices and every change
	// of who holds them; dull: only the last matters.
	Devices *DeviceBoard `json:"devices,omitempty"`
}

// ResetFinished is how many finished sessions a [Reset] holds. Whoever wants
// more of them asks for a page.
const ResetFinished = 100

// Reset is the whole state: a watcher forgets what it knew and takes this.
// Sessions holds every live session and the newest [ResetFinished] that are finished.
type Reset struct {
	Sessions []Session `json:"sessions"`
	Machine  Machine   `json:"machine"`

	Devices *DeviceBoard `json:"devices,omitempty"` // nil: none was made yet
}

// Cursor is a place in an event stream. The zero cursor is before everything.
type Cursor struct {
	Epoch string `json:"epoch,omitempty"`
	Seq   uint64 `json:"seq,omitempty"`
}
