package router

import (
	"time"

	"slipway/backend/session"
)

// Outcome says how a request ended.
type Outcome string

// The outcomes of requests.
const (
	OutcomeOK         Outcome = "ok"          // the whole answer of a replica was passed on, with a status below 500
	OutcomeClientLeft Outcome = "client-left" // the client closed its connection before that
	OutcomeCut        Outcome = "cut"         // the answer broke off after it had begun
	OutcomeRefused    Outcome = "refused"     // the router did not accept the request: token, origin, route or body
	OutcomeLimited    Outcome = "limited"     // a limit of the token, or too many requests wait already
	OutcomeFailed     Outcome = "failed"      // no replica answered in time, or one answered with a status from 500 on
)

// Record describes one request that ended.
type Record struct {
	At         time.Time  // when it arrived
	Service    string     // empty: none was found
	Owner      string     // of the service
	Revision   int        // of the replica, else of the service
	Token      string     // ID of its token; empty: none was needed
	Replica    session.ID // to which it was sent last; empty: none
	Outcome    Outcome
	Status     int           // HTTP status that was sent; 0: none
	Stream     bool          // it asked for a stream, or was answered by one
	Prompt     int           // tokens read, as the server reported them; 0: unknown
	Completion int           // tokens written
	FirstWord  time.Duration // from its arrival to the first byte of the answer's body; 0: there was none
	Whole      time.Duration // from its arrival to its end
	BytesIn    int64         // of the body of the request
	BytesOut   int64         // of the body of the answer
}

// Traffic describes the requests of a service at one moment.
type Traffic struct {
	Replicas   map[session.ID]Load
	Waiting    int       // requests that wait for a ready replica
	LastSecond int       // requests that arrived in the last second, to 0.1 s
	Last30     int       // requests that arrived in the last 30 s
	Last       time.Time // when the last request arrived; zero: none yet
	IdleSince  time.Time // since when there has been no request, waiting or under way; zero: there is one now
}

// Load describes the requests of one replica.
type Load struct {
	Outstanding int       // requests that were sent to it and have not ended
	LastByte    time.Time // when a byte last moved between it and the router; zero: never
}
