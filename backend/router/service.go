package router

import (
	"cmp"
	"crypto/sha256"
	"time"

	"slipway/backend/session"
)

// Service is an inference service as the router sees it: where its replicas are and who may use it.
type Service struct {
	Name            string   // its name in /services/NAME; unique
	Owner           string   // the person it belongs to, shown as owned_by in the list of models
	Revision        int      // recorded for requests that reach no replica
	Models          []string // names under which /v1 finds it; empty: Name
	Replicas        []Replica
	Tokens          []Token
	Public          bool // requests need no token
	Asleep          bool // it has no replicas by rule and starts for a request; true until its first one is ready
	IncludeUsage    bool // its engine counts tokens in streams if stream_options.include_usage asks for it
	RetryUnanswered bool // repeat a plain request under /v1 once if its replica closed without a byte of an answer
	Limits          Limits
}

// Replica is one session that serves a service.
type Replica struct {
	ID       session.ID
	Revision int
	Port     int  // the TCP port in the session on which its server listens
	Ready    bool // it gets new requests; false while it starts, is unhealthy or drains
}

// Token permits requests to one service. The text of the token is not stored.
type Token struct {
	ID         string // the name in records, not secret
	Hash       [sha256.Size]byte
	Expires    time.Time // zero: never
	Rate       float64   // requests a minute, which may come all at once; 0: no limit
	Concurrent int       // requests at a time, those that wait included; 0: no limit
}

// Limits bounds the requests of a service. A zero value is the default.
type Limits struct {
	Waiting   int           // requests that wait for a ready replica at a time; default 256
	Hold      time.Duration // how long a request waits for a ready replica; default 30 s
	Waking    time.Duration // how long it waits while the service is asleep; default 10 min
	Connect   time.Duration // until a connection to a replica is open; default 2 s
	FirstByte time.Duration // from sending a request to the first byte of its answer; default 10 min
	Silence   time.Duration // between two bytes of a body, in either direction; default 5 min
	Body      int64         // bytes of the body of a request; default 64 MiB
}

// orDefault returns l with defaults in place of zeros.
func (l Limits) orDefault() Limits {
	return Limits{
		Waiting:   cmp.Or(l.Waiting, 256),
		Hold:      cmp.Or(l.Hold, 30*time.Second),
		Waking:    cmp.Or(l.Waking, 10*time.Minute),
		Connect:   cmp.Or(l.Connect, 2*time.Second),
		FirstByte: cmp.Or(l.FirstByte, 10*time.Minute),
		Silence:   cmp.Or(l.Silence, 5*time.Minute),
		Body:      cmp.Or(l.Body, 64<<20),
	}
}
