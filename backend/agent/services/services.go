// Package services keeps models served: it stores services and their tokens, launches and ends their replicas as
// package serving plans, asks the replicas whether they are healthy, and routes requests to them by package router.
package services

import (
	"context"
	"net"
	"sync"
	"time"

	"slipway/backend/agent/accounts"
	"slipway/backend/agent/host"
	"slipway/backend/agent/scrape"
	"slipway/backend/router"
	"slipway/backend/serving"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

// Config says how replicas are launched, reached and ended.
type Config struct {
	host.Host
	Sessions Sessions
	Accounts Accounts
	// Dial connects to a port of a replica.
	Dial      func(ctx context.Context, id session.ID, port int) (net.Conn, error)
	Listeners Listeners
	// DeviceMemory returns the memory of the largest device; 0: there is none.
	DeviceMemory func() gpu.Bytes
	// Sample returns what a session used when it was last measured.
	Sample func(id session.ID) (sample session.Usage, known bool)
	// LastLines returns the end of a replica's log, for the reason of a failure.
	LastLines func(ctx context.Context, id session.ID) []string
}

// Accounts count requests that have ended.
type Accounts interface {
	Count(wall time.Time, of accounts.Asked, token string, d session.Requests)
}

// Listeners are where clients on the machine and on other computers reach services, as of package listeners.
type Listeners interface {
	Open()
	Take() []net.Listener
	Addresses() []session.ServiceAddress
	Named(host string) bool
}

// Sessions launches and ends replicas.
type Sessions interface {
	LaunchReplica(ctx context.Context, req session.LaunchRequest) (session.Session, error)
	// CheckReplica returns what is wrong with the spec of a replica.
	CheckReplica(ctx context.Context, owner string, spec session.Spec) ([]session.FieldError, error)
	Get(ctx context.Context, id session.ID) (session.Session, error)
	Preview(ctx context.Context, owner string, spec session.Spec, count int) (session.Preview, error)
	Terminate(ctx context.Context, id session.ID, forced bool) (session.Session, error)
}

// Bounds of what a machine keeps.
const (
	maxServices   = 100
	maxTokens     = 100
	keptRevisions = 20
)

// Services are the services of a machine. Its methods are safe for concurrent use.
type Services struct {
	config  Config
	router  *router.Router
	scraper *scrape.Scraper
	pipe    *pipe // connections of DialService to the router
	wake    chan struct{}
	checks  sync.WaitGroup // of health, and the router
	tally   tally

	mu       sync.Mutex // guards the rest
	list     map[string]*service
	replicas map[session.ID]*replica // live ones, by their sessions
}

// kept is what is stored of a service.
type kept struct {
	Name      string                 `json:"name"`
	Owner     string                 `json:"owner"`
	ByAdmin   bool                   `json:"byAdmin,omitempty"`
	Wish      session.ServiceWish    `json:"wish"`
	Revisions []session.Revision     `json:"revisions"` // newest first
	Tokens    []keptToken            `json:"tokens"`
	Plan      serving.Record         `json:"plan"`
	Events    []session.ServiceEvent `json:"events,omitempty"` // newest first
	CreatedAt time.Time              `json:"createdAt"`
	Removed   bool                   `json:"removed,omitempty"` // forgotten once its replicas have ended
}

type keptToken struct {
	session.ServiceToken
	Hash string `json:"hash"` // SHA-256 of its text, in hex
}

// service is a service and what is known only while the agent runs.
type service struct {
	kept
	state session.ServiceState
	why   []session.Phrase // the state
	rules []session.RuleState
}

// Open returns the services that are stored. They are served once Run runs.
func Open(config Config) (*Services, error) {
	s := &Services{config: config, pipe: newPipe(), wake: make(chan struct{}, 1), list: map[string]*service{},
		replicas: map[session.ID]*replica{}}
	s.scraper = scrape.New(scrape.Config{Clock: config.Clock, Dial: config.Dial})
	s.router = router.New(router.Config{Dial: config.Dial, Account: s.account, Log: config.Log,
		Named:   config.Listeners.Named,
		Wake:    func(string) { s.planSoon() },
		Refused: func(_ string, id session.ID) { s.refused(id) }})
	stored, err := store.Services[kept](config.Records.Store)
	if err != nil {
		return nil, err
	}
	for name, one := range stored {
		s.list[name] = &service{kept: one, state: session.ServiceDeploying}
	}
	s.route() // what clients ask before the first plan waits for a replica
	return s, nil
}
