package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"

	"slipway/backend/agentrpc"
	"slipway/backend/hub"
	"slipway/backend/session"
	"slipway/tunnel/secure"
)

// pairTries is how often a code may be typed in one operation.
const pairTries = 3

// mistyped are the failures after which the code is asked for once more.
var mistyped = []session.Code{session.CodePairCode, session.CodePairExpired}

// pinnedDialer dials an agent that this computer is paired with, and can be told
// to expect another key.
type pinnedDialer struct {
	config secure.DialConfig

	mu       sync.Mutex // guards the following
	identity *secure.Identity
	key      string // that is expected
	now      *secure.Dialer
}

// expect has the dialer expect another key from now on.
func (d *pinnedDialer) expect(key string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.set(d.identity, key)
}

// become has the dialer show another key from now on.
func (d *pinnedDialer) become(identity *secure.Identity) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.set(identity, d.key)
}

// set needs mu.
func (d *pinnedDialer) set(identity *secure.Identity, key string) error {
	config := d.config
	config.Identity, config.Key = identity, key
	var dialer *secure.Dialer
	if keep := config.Moved; keep != nil {
		config.Moved = func(moved string) error {
			if err := keep(moved); err != nil {
				return err
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.now == dialer {
				d.key = moved
			}
			return nil
		}
	}
	var err error
	dialer, err = secure.NewDialer(config)
	if err != nil {
		return session.WrapError(err, session.CodeConnectInvalid, "The key of the agent cannot be read.",
			"Remove the agent and add it again.")
	}
	d.identity, d.key, d.now = identity, key, dialer
	return nil
}

func (d *pinnedDialer) Dial(ctx context.Context, silent bool) (net.Conn, error) {
	d.mu.Lock()
	now := d.now
	d.mu.Unlock()
	return now.Dial(ctx, silent)
}

// dialConfig is how an address is dialled by this computer.
func (c *Connector) dialConfig(address hub.Address) (secure.DialConfig, error) {
	identity, err := c.identity()
	if err != nil {
		return secure.DialConfig{}, err
	}
	text := net.JoinHostPort(address.Host, fmt.Sprint(cmp.Or(address.Port, secure.DefaultPort)))
	if address.Scheme == hub.SchemeWSS {
		text = address.String()
	}
	at, err := secure.ParseAddress(text)
	if err != nil {
		return secure.DialConfig{}, agentrpc.FaultError(err)
	}
	return secure.DialConfig{Identity: identity, Address: at, Fallback: !at.Web}, nil
}

// byTLS reaches an agent as a paired client.
func (a *agent) byTLS(address hub.Address) error {
	config, err := a.connector.dialConfig(address)
	if err != nil {
		return err
	}
	config.Moved = a.listed.Pin
	a.transport = "tls"
	if config.Address.Web {
		a.transport = "wss"
	}
	a.tls = &pinnedDialer{config: config, identity: config.Identity}
	if err := a.tls.expect(a.entry.Fingerprint); err != nil {
		return err
	}
	a.begin(a.tls)
	return nil
}

// pair makes this computer and an agent known to one another by a code.
func (c *Connector) pair(ctx context.Context, work *hub.Work, entry hub.Entry, address hub.Address) (hub.Entry, error) {
	paired, err := c.pairBy(ctx, work, address)
	if err != nil {
		return entry, err
	}
	entry.Fingerprint, entry.Owner = paired.Key, paired.Owner
	return entry, nil
}

// pairBy asks for the code and pairs. A wrong one is asked for again, a few times.
func (c *Connector) pairBy(ctx context.Context, work *hub.Work, address hub.Address) (paired secure.Paired, err error) {
	config, err := c.dialConfig(address)
	if err != nil {
		return secure.Paired{}, err
	}
	return paired, work.Do("pair", "Pair", func() (string, error) {
		why := ""
		for try := 1; ; try++ {
			code, err := work.Ask(ctx, hub.Prompt{Kind: hub.PromptPairCode, Again: try > 1, Host: address.Host,
				Text: why + "Type the code that slipway agent pair shows on " + address.Host + "."})
			if err != nil {
				return "", err
			}
			paired, err = secure.Pair(ctx, secure.PairConfig{Dial: config, Code: code, Name: c.hostName()})
			if err == nil {
				return fmt.Sprintf("%s knows this computer now; its key is %s.", paired.Name,
					secure.ShortFingerprint(paired.Key)), nil
			}
			told := connectError(err)
			if !slices.Contains(mistyped, told.Code) || try == pairTries {
				return "", told
			}
			why = told.Message + " "
		}
	})
}

// pairAgain pairs with an agent that has forgotten this computer.
func (a *agent) pairAgain(ctx context.Context, work *hub.Work) error {
	address, err := hub.ParseAddress(a.entry.Address)
	if err != nil {
		return err
	}
	paired, err := a.connector.pairBy(ctx, work, address)
	if err != nil {
		return err
	}
	if err := a.listed.Pin(paired.Key); err != nil {
		return err
	}
	return a.tls.expect(paired.Key)
}

// probeTLS finds out whether an agent answers, and where it is one of ours asks
// it what it thinks of its machine.
func (c *Connector) probeTLS(ctx context.Context, work *hub.Work, entry hub.Entry, address hub.Address) error {
	if known := c.of(entry); known != nil {
		return known.examine(ctx, work)
	}
	config, err := c.dialConfig(address)
	if err != nil {
		return err
	}
	config.Key = config.Identity.Fingerprint() // nobody else has it: what answers names its own
	return work.Do("answer", "Look whether an agent answers", func() (string, error) {
		dialer, err := secure.NewDialer(config)
		if err != nil {
			return "", err
		}
		conn, err := dialer.Dial(ctx, true)
		var other *secure.KeyError
		switch {
		case err == nil:
			return "This very computer answers there.", conn.Close()
		case errors.As(err, &other):
			return "An agent with the key " + secure.ShortFingerprint(other.Got) +
				" answers. Add it, with a code that slipway agent pair shows there.", nil
		}
		return "", connectError(err)
	})
}

// examine has an agent that is reached probe its own machine.
func (a *agent) examine(ctx context.Context, work *hub.Work) error {
	checks, err := a.client.Doctor(ctx)
	if err != nil {
		return err
	}
	for _, check := range checks {
		work.Tell(hub.Step{Name: check.ID, Title: check.Title, State: hub.StepState(check.Result), Detail: check.Text,
			Remedy: check.Remedy})
	}
	return nil
}
