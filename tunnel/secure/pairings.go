package secure

import (
	"crypto/rand"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway/tunnel"
)

// Limits of pairing.
const (
	// OfferTTL is how long a code is valid.
	OfferTTL = 10 * time.Minute

	maxFailures = 5           // wrong codes that end an offer
	failureWait = time.Second // after each wrong code, times their number
	maxOffers   = 16

	// maxAllFailures within failuresKept stop all pairing, so that new offers cannot be guessed at for ever.
	maxAllFailures = 30
	failuresKept   = time.Hour
)

// Offer is an active code. Code is shown to a person once and never logged.
type Offer struct {
	Code    string
	Expires time.Time
	Taken   <-chan Client // receives the client that pairs with the code
}

// Grant is the owner and role of a client that pairs.
type Grant struct {
	Owner string // the account that its sessions belong to
	Role  Role
}

// Pairings are the active codes. They are only in memory: a restart ends them. All methods are safe for concurrent use;
// a nil Pairings has no codes.
type Pairings struct {
	now func() time.Time

	mu       sync.Mutex // guards the following
	offers   map[string]*offer
	failures []time.Time // of all offers, oldest first
}

type offer struct {
	secret   string
	expires  time.Time
	grant    Grant
	failures int
	next     time.Time   // when the next code is accepted
	taken    chan Client // of capacity 1
}

// NewPairings returns a Pairings without codes. now is time.Now if nil.
func NewPairings(now func() time.Time) *Pairings {
	if now == nil {
		now = time.Now
	}
	return &Pairings{now: now, offers: map[string]*offer{}}
}

// Offer makes a code with which one client may pair, once, within [OfferTTL].
func (p *Pairings) Offer(grant Grant) (Offer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prune()
	if len(p.failures) >= maxAllFailures {
		return Offer{}, tunnel.NewFault(tunnel.CodePairRefused, "Too many wrong codes. Pairing is blocked for an hour.",
			"Someone may be guessing. Find out who before you create another code.", nil)
	}
	if len(p.offers) >= maxOffers {
		return Offer{}, &tunnel.Fault{Code: tunnel.CodePairRefused, Message: "Too many pairing codes are active.",
			Hint: "Use one of them first, or wait until one expires."}
	}
	c := newCode()
	for p.offers[c.plate] != nil {
		c = newCode()
	}
	o := &offer{secret: c.secret, expires: p.now().Add(OfferTTL), grant: grant, taken: make(chan Client, 1)}
	p.offers[c.plate] = o
	return Offer{Code: c.String(), Expires: o.expires, Taken: o.taken}, nil
}

// open reports whether a client can pair.
func (p *Pairings) open() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prune()
	return len(p.offers) > 0 && len(p.failures) < maxAllFailures
}

// prune removes what has expired; p.mu is held.
func (p *Pairings) prune() {
	now := p.now()
	for plate, o := range p.offers {
		if !now.Before(o.expires) {
			delete(p.offers, plate)
		}
	}
	p.failures = slices.DeleteFunc(p.failures, func(at time.Time) bool { return now.Sub(at) >= failuresKept })
}

// find returns the offer of a plate, and statusOK or why no code for it is accepted now. p.mu is held.
func (p *Pairings) find(plate string) (*offer, string) {
	p.prune()
	o := p.offers[plate]
	switch {
	case len(p.failures) >= maxAllFailures:
		return nil, statusLocked
	case o == nil: // used, expired, guessed at too often, or never made
		return nil, statusNoCode
	case p.now().Before(o.next):
		return o, statusWait
	}
	return o, statusOK
}

// settle handles a client's code, and adds the client if it is right. It returns statusOK when the client is listed and
// the offer is used up.
func (p *Pairings) settle(plate string, o *offer, right bool, client Client, add func(Client) error) string {
	if status := p.judge(plate, o, right); status != statusOK {
		return status
	}
	client.Owner, client.Role = o.grant.Owner, o.grant.Role
	if err := add(client); err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.offers[plate] == nil {
			p.offers[plate] = o // valid again
		}
		return statusFailed
	}
	o.taken <- client
	return statusOK
}

// judge removes the offer if the guess was right. Guesses are judged only here, so that concurrent ones are counted one
// by one.
func (p *Pairings) judge(plate string, o *offer, right bool) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	current, status := p.find(plate)
	switch {
	case status == statusLocked:
		return statusLocked
	case current != o:
		return statusNoCode
	case status == statusWait:
		return statusWait
	case right:
		delete(p.offers, plate)
		return statusOK
	}
	now := p.now()
	o.failures++
	o.next = now.Add(time.Duration(o.failures) * failureWait)
	p.failures = append(p.failures, now)
	if o.failures >= maxFailures {
		delete(p.offers, plate)
	}
	return statusWrong
}

// A code has two digits that name its offer, the plate, and eight that are secret: "42-4821-7390". Digits are read,
// heard and typed without mistakes in every language and on every keyboard. With at most maxFailures guesses for an
// offer, guessing succeeds once in twenty million offers.
const (
	plateDigits  = 2
	secretDigits = 8
)

// code is what a person carries from the agent to the client.
type code struct {
	plate  string
	secret string
}

// newCode returns a random code.
func newCode() code {
	random := func(below int64) int64 {
		n, _ := rand.Int(rand.Reader, big.NewInt(below)) // fails only with the reader, which never does
		return n.Int64()
	}
	return code{fmt.Sprint(10 + random(90)), fmt.Sprintf("%0*d", secretDigits, random(100_000_000))}
}

// String returns the code as it is shown.
func (c code) String() string {
	return c.plate + "-" + c.secret[:secretDigits/2] + "-" + c.secret[secretDigits/2:]
}

// parseCode reads a code as people type it. Its error does not repeat it.
func parseCode(text string) (code, error) {
	digits := strings.Map(func(r rune) rune {
		switch {
		case r >= '0' && r <= '9':
			return r
		case r >= '０' && r <= '９': // as an input method for East Asian scripts may give them
			return r - '０' + '0'
		case strings.ContainsRune(" -–—.\t\u00a0", r):
			return -1
		}
		return 'x'
	}, strings.TrimSpace(text))
	if len(digits) != plateDigits+secretDigits || strings.Contains(digits, "x") {
		return code{}, &tunnel.Fault{Code: tunnel.CodePairCode, Message: "A pairing code has ten digits.",
			Hint: "Enter it as the agent's machine shows it, for example 42-4821-7390."}
	}
	return code{digits[:plateDigits], digits[plateDigits:]}, nil
}
