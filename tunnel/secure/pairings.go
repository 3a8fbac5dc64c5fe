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
	// OfferTTL is how long a code is good for.
	OfferTTL = 10 * time.Minute

	maxFailures = 5           // wrong codes for one offer; then it is over
	failureWait = time.Second // after each wrong code, times their number
	maxOffers   = 16

	// maxAllFailures in failuresKept stop all pairing for a while, so that new offers cannot be guessed at for ever.
	maxAllFailures = 30
	failuresKept   = time.Hour
)

// Offer is an active code. Code is shown to a person once and never logged.
type Offer struct {
	Code    string
	Expires time.Time
	Taken   <-chan Client // gives the client that has paired with the code, if one does
}

// Grant is the owner and role of a client that pairs.
type Grant struct {
	Owner string // the account that its sessions belong to
	Role  Role
}

// Pairings are the active codes. They are kept in memory only: a restart ends them. All methods are safe for concurrent
// use; a nil Pairings has no codes.
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
	next     time.Time   // before it no further code is looked at
	taken    chan Client // of one
}

// NewPairings returns a Pairings without codes. now is time.Now if nil.
func NewPairings(now func() time.Time) *Pairings {
	if now == nil {
		now = time.Now
	}
	return &Pairings{now: now, offers: map[string]*offer{}}
}

// Offer makes a code that one client may pair with, once, within [OfferTTL].
func (p *Pairings) Offer(grant Grant) (Offer, error) {
	secret, err := newSecret()
	if err != nil {
		return Offer{}, err
	}
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
	for {
		plate, err := newPlate()
		if err != nil {
			return Offer{}, err
		}
		if p.offers[plate] != nil {
			continue
		}
		expires := p.now().Add(OfferTTL)
		o := &offer{secret: secret, expires: expires, grant: grant, taken: make(chan Client, 1)}
		p.offers[plate] = o
		return Offer{Code: code{plate, secret}.String(), Expires: expires, Taken: o.taken}, nil
	}
}

// open reports whether any code is out.
func (p *Pairings) open() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prune()
	return len(p.offers) > 0 && len(p.failures) < maxAllFailures
}

// prune forgets what has expired; p.mu is held.
func (p *Pairings) prune() {
	now := p.now()
	for plate, o := range p.offers {
		if !now.Before(o.expires) {
			delete(p.offers, plate)
		}
	}
	p.failures = slices.DeleteFunc(p.failures, func(at time.Time) bool { return now.Sub(at) >= failuresKept })
}

// find returns the offer of a plate, and else why there is none.
func (p *Pairings) find(plate string) (*offer, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prune()
	o := p.offers[plate]
	switch {
	case len(p.failures) >= maxAllFailures:
		return nil, statusLocked
	case o == nil:
		return nil, statusNoCode
	case p.now().Before(o.next):
		return nil, statusWait
	}
	return o, statusOK
}

// settle takes in whether a client knew the code, and adds the client if so. It returns statusOK when the client is
// listed and the offer used up.
func (p *Pairings) settle(plate string, o *offer, right bool, client Client, add func(Client) error) string {
	if status := p.judge(plate, o, right); status != statusOK {
		return status
	}
	client.Owner, client.Role = o.grant.Owner, o.grant.Role
	if err := add(client); err != nil {
		p.giveBack(plate, o)
		return statusFailed
	}
	o.taken <- client
	return statusOK
}

// judge takes an offer away from all others if the guess was right. Only here guesses are judged, so that any number
// made at a time are counted one by one.
func (p *Pairings) judge(plate string, o *offer, right bool) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prune()
	now := p.now()
	switch {
	case len(p.failures) >= maxAllFailures:
		return statusLocked
	case p.offers[plate] != o: // used, expired or guessed at too often
		return statusNoCode
	case now.Before(o.next):
		return statusWait
	case right:
		delete(p.offers, plate)
		return statusOK
	}
	o.failures++
	o.next = now.Add(time.Duration(o.failures) * failureWait)
	p.failures = append(p.failures, now)
	if o.failures >= maxFailures {
		delete(p.offers, plate)
	}
	return statusWrong
}

// giveBack makes an offer good again that could not be used.
func (p *Pairings) giveBack(plate string, o *offer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.offers[plate] == nil {
		p.offers[plate] = o
	}
}

// A code has two digits that say which offer it belongs to, and eight that are secret: "42-4821-7390". Digits are read,
// heard and typed without mistakes in every language and on every keyboard. With at most maxFailures guesses for an
// offer, guessing succeeds once in twenty million offers.
const (
	plateDigits  = 2
	secretDigits = 8
	plates       = 90 // 10 to 99
)

// code is what a person carries from the agent to the client.
type code struct {
	plate  string
	secret string
}

func randomDigits(below, from int64, width int) (string, error) {
	n, err := rand.Int(rand.Reader, big.NewInt(below))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%0*d", width, n.Int64()+from), nil
}

func newSecret() (string, error) { return randomDigits(100_000_000, 0, secretDigits) }

func newPlate() (string, error) { return randomDigits(plates, 10, plateDigits) }

// String is the code as it is shown.
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
