package updates

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"slipway/backend/pace"
	"slipway/backend/session"
)

// Offer is what is known of a newer version.
type Offer struct {
	Address string           `json:"address"`           // of the release host; empty: it is never asked
	Asked   *time.Time       `json:"asked,omitempty"`   // when the host was last asked; absent: never
	Newer   *Release         `json:"newer,omitempty"`   // a newer version; absent: none is known
	Advice  []session.Phrase `json:"advice"`            // how this copy was installed and how to upgrade it
	Problem *session.Error   `json:"problem,omitempty"` // why the host did not answer
}

// Shelf stores what the host said last.
type Shelf interface {
	Load(key string, value any) (bool, error)
	Save(key string, value any) error
}

// Config configures a Checker.
type Config struct {
	Address   func() string     // of the setting
	Version   string            // of this program
	Transport http.RoundTripper // nil: the usual one
	Shelf     Shelf
	Log       *slog.Logger
}

// Checker asks for newer versions. It is safe for concurrent use.
type Checker struct {
	config Config
	asking sync.Mutex // one request at a time; locked before mu, never after
	mu     sync.Mutex
	last   memory // guarded by mu, also on the shelf
}

// New returns a Checker.
func New(config Config) *Checker { return &Checker{config: config} }

// memory is what the host at an address said last.
type memory struct {
	Address string
	Asked   time.Time
	Newest  *Release
	Problem *session.Error
}

const shelfKey = "updates"

// recall returns what the host of the setting said last.
func (c *Checker) recall() memory {
	address := c.config.Address()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last.Address != address {
		c.last = memory{}
		if _, err := c.config.Shelf.Load(shelfKey, &c.last); err != nil || c.last.Address != address {
			c.last = memory{Address: address}
		}
	}
	return c.last
}

func (c *Checker) keep(m memory) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = m
	if err := c.config.Shelf.Save(shelfKey, m); err != nil {
		c.config.Log.Warn("what the release host said is not stored", "error", err)
	}
}

// Offer returns what is known, without a request to the host.
func (c *Checker) Offer() Offer { return c.offer(c.recall()) }

func (c *Checker) offer(m memory) Offer {
	files := m.Address[:strings.LastIndex(m.Address, "/")+1] + "files/"
	o := Offer{Address: m.Address, Advice: []session.Phrase{advice(files)}, Problem: m.Problem}
	if !m.Asked.IsZero() {
		o.Asked = &m.Asked
	}
	if m.Newest != nil && Newer(m.Newest.Version, c.config.Version) {
		o.Newer = m.Newest
	}
	return o
}

// Check asks the host now. Its failure is the problem of the offer.
func (c *Checker) Check(ctx context.Context) Offer {
	c.asking.Lock()
	defer c.asking.Unlock()
	m := c.recall()
	if m.Address == "" {
		said := session.Say("updateNoAddress")
		o := c.offer(m)
		o.Problem = &session.Error{Code: session.CodeSettingsInvalid, Message: said.English(),
			Said: []session.Phrase{said}, Hint: "slipway settings set updates https://HOST/latest.json"}
		return o
	}
	newest, err := fetch(ctx, c.config.Transport, m.Address)
	m.Asked, m.Problem = time.Now(), nil
	if problem, failed := errors.AsType[*session.Error](err); failed {
		m.Problem = problem
		c.config.Log.Warn("the release host was asked in vain", "error", err)
	} else {
		m.Newest = &newest
	}
	c.keep(m)
	return c.offer(m)
}

const (
	often = 10 * time.Minute // between looks at the setting and the clock
	day   = 24 * time.Hour
)

// Run asks the host once a day while its address is set, until ctx ends.
func (c *Checker) Run(ctx context.Context) {
	for pace.Wall().Pause(ctx, often) == nil {
		m := c.recall()
		if since := time.Since(m.Asked); m.Address != "" && (since < 0 || since >= day) {
			c.Check(ctx)
		}
	}
}
