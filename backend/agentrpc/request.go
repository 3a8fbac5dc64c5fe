package agentrpc

import (
	"encoding/json"
	"time"
)

// Version is the version of the protocol. One apart is tolerated.
const Version = 1

// request is the first frame of every stream.
type request struct {
	Version int    `json:"v"`
	Method  string `json:"method"`
	// ID is the same for every repetition of one call and unlike any other's.
	// Empty: the call is never repeated, or repeating it does no harm.
	ID string `json:"id,omitempty"`
	// Age is how long ago the call was first made.
	Age time.Duration `json:"age,omitempty"`
	// Limit is how long the caller will wait; 0: as long as it takes.
	Limit time.Duration   `json:"limit,omitempty"`
	Args  json.RawMessage `json:"args,omitempty"`
	// Lasting says that the stream which is opened may go on over another one.
	Lasting *lastingAt `json:"lasting,omitempty"`
}

// lastingAt is where one side of a lasting stream stands.
type lastingAt struct {
	Received uint64 `json:"received"` // bytes that came from the other side
	Window   uint64 `json:"window"`   // bytes that may be under way or unread
	// Begun says that the caller has had an answer, so that the stream must be
	// one that the handler knows.
	Begun bool `json:"begun,omitempty"`
}

// lastingAnswer is the answer to the opening of a stream of bytes. Handlers that
// do not know of lasting streams leave it empty.
type lastingAnswer struct {
	Lasting *lastingAt `json:"lasting,omitempty"`
}

// Hello is what a handler says of itself.
type Hello struct {
	Version int      `json:"version"`           // of the protocol
	Oldest  int      `json:"oldest"`            // version of the protocol that it still understands
	Methods []string `json:"methods"`           // sorted
	Program string   `json:"program,omitempty"` // version of the program
}

// none is the absence of arguments or of an answer.
type none struct{}

// effect says what a call may do to the world, and so what becomes of it when
// it is cut.
type effect int

const (
	// read changes nothing and is repeated freely.
	read effect = iota
	// again asks for a state: it is answered from memory, and made once more
	// where the memory may have lost it.
	again
	// once is answered from memory and never made a second time.
	once
)
