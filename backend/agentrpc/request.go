package agentrpc

import (
	"encoding/json"
	"time"
)

// Version is the version of the protocol. One later is tolerated, and none before oldest, whose streams ended with
// their tunnels.
const (
	Version = 2
	oldest  = 2
)

// request is the first frame of every stream.
type request struct {
	Version int    `json:"v"`
	Method  string `json:"method"`
	// Limit is how long the caller will wait; 0: as long as it takes.
	Limit time.Duration   `json:"limit,omitempty"`
	Args  json.RawMessage `json:"args,omitempty"`
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

// effect says what a call may do to the world, and so what becomes of it when it is cut.
type effect int

const (
	// read changes nothing and is repeated freely.
	read effect = iota
	// again asks for a state: it is made once more where its stream was lost.
	again
	// once is never made a second time.
	once
)
