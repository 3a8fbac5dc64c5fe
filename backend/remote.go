package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"slipway/backend/agentrpc"
	"slipway/backend/daemon"
	"slipway/backend/hub"
	"slipway/backend/place"
	"slipway/backend/provision"
	"slipway/backend/session"
	"slipway/tunnel"
	"slipway/tunnel/secure"
	"slipway/tunnel/sshstdio"
)

// remote is one agent on another machine with the line to it. It implements
// [hub.Remote].
type remote struct {
	reacher   *reacher
	entry     hub.Entry
	listed    hub.Listed
	transport string
	line      *tunnel.Line
	client    *agentrpc.Client
	ssh       *sshConnection // nil: it is reached as a paired device
	tls       *pinnedDialer  // nil: it is reached by ssh

	// mu guards everything below.
	mu      sync.Mutex
	link    hub.Link
	changed chan struct{}
	program string // version of the agent, as it said last
	trouble error  // why an agent that is connected cannot be used
}

var _ hub.Remote = (*remote)(nil)

// looksEvery is how often figures of a line that stands are taken.
const looksEvery = 2 * time.Second

func newRemote(r *reacher, entry hub.Entry, listed hub.Listed) *remote {
	return &remote{reacher: r, entry: entry, listed: listed, changed: make(chan struct{})}
}

func (m *remote) bySSH(connection *sshConnection, err error) error {
	if err != nil {
		return err
	}
	m.ssh, m.transport = connection, "ssh"
	m.begin(connection)
	return nil
}

// begin makes the line over a dialer.
func (m *remote) begin(dialer tunnel.Dialer) {
	log := m.reacher.log.With("agent", m.entry.ID)
	if through := m.reacher.through; through != nil {
		dialer = through(dialer)
	}
	m.line = tunnel.NewLine(tunnel.LineConfig{Dialer: dialer, NeedsPerson: needsPerson, Log: log})
	m.client = agentrpc.NewClient(agentrpc.ClientConfig{Name: m.listed.Name, Opener: m.line,
		Distrust: m.listed.Distrust})
	m.link = hub.Link{State: hub.LinkOff, Since: m.reacher.clock.Now(), Transport: m.transport}
}

// personCodes are the failures that trying again does not mend, or makes worse.
var personCodes = []string{
	"agent_connect_host-key-changed", "agent_connect_host-key", "agent_connect_auth", "agent_connect_key-changed",
	"agent_connect_not-paired", "agent_connect_invalid", "agent_connect_config", "agent_connect_no-ssh",
	"agent_connect_cancelled",
}

func needsPerson(err error) bool {
	var fault *tunnel.Fault
	var version *tunnel.VersionError
	return errors.Is(err, tunnel.ErrWouldAsk) || errors.As(err, &version) || errors.As(err, &fault) &&
		slices.Contains(personCodes, fault.Code)
}

func (m *remote) Agent() session.Agent { return m.client }

func (m *remote) Run(ctx context.Context) {
	defer m.reacher.forget(m)
	var group sync.WaitGroup
	group.Go(func() { m.look(ctx) })
	_ = m.line.Run(ctx) // how it ended is why ctx did
	group.Wait()
	m.take(tunnel.LineStatus{State: tunnel.LineOff, Since: time.Now()})
	if m.ssh != nil {
		if err := m.ssh.Close(); err != nil {
			m.reacher.log.Warn("a connection was not given up in good order", "agent", m.entry.ID, "error", err)
		}
	}
}

// look takes in what the line says of itself until ctx ends.
func (m *remote) look(ctx context.Context) {
	ticker := time.NewTicker(looksEvery)
	defer ticker.Stop()
	var met time.Time // since when the tunnel stands that has been greeted
	var greeting sync.WaitGroup
	defer greeting.Wait()
	for {
		status, changed := m.line.Status()
		m.take(status)
		if status.State == tunnel.LineConnected && !status.Since.Equal(met) {
			met = status.Since
			greeting.Go(func() { m.greet(ctx) })
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-ticker.C:
		}
	}
}

// greet asks an agent that is reached what it is.
func (m *remote) greet(ctx context.Context) {
	hello, err := m.client.Hello(ctx)
	m.mu.Lock()
	m.trouble = nil
	if err == nil {
		m.program = hello.Program
	} else if session.CodeOf(err) == agentrpc.CodeVersion {
		m.trouble = err
	}
	m.mu.Unlock()
	status, _ := m.line.Status()
	m.take(status)
}

// take makes a link of what a line says.
func (m *remote) take(status tunnel.LineStatus) {
	m.mu.Lock()
	defer m.mu.Unlock()
	clock := m.reacher.clock // what people read of a demo goes by its own
	link := hub.Link{
		State: hub.LinkState(status.State), Since: clock.At(status.Since), LastHeard: clock.At(status.LastHeard),
		RTT: status.RTT, Transport: m.transport,
		Carriers: status.Carriers, NextTry: clock.At(status.NextTry), Version: m.program, Owner: m.entry.Owner,
	}
	if m.transport == "tls" && status.Peer.Transport == "wss" {
		link.Transport = "wss"
	}
	if m.ssh != nil {
		link.Role = "admin" // whoever may log in rules what runs there
		if m.program != "" && m.program != place.Version {
			link.Upgrade = place.Version
		}
	}
	m.explain(&link, status.Err)
	link.Question = question(status)
	m.link = link
	close(m.changed)
	m.changed = make(chan struct{})
}

// explain needs mu: it says what is waited for, and why.
func (m *remote) explain(link *hub.Link, err error) {
	switch link.State {
	case hub.LinkConnected:
		link.Err = nil
		if m.trouble != nil {
			link.Err = m.trouble
			link.Waits = session.AsError(m.trouble, "").Message
		}
		return
	case hub.LinkConnecting:
		link.Waits = "It is being connected."
		return
	case hub.LinkProbing:
		link.Waits = "It has gone silent and is asked for a sign of life."
		return
	case hub.LinkOff:
		return
	}
	told := connectError(err)
	link.Err = told
	link.Waits = told.Message + " It is tried again by itself."
	if link.State == hub.LinkQuestion {
		link.NextTry = time.Time{}
		link.Waits = told.Message + " It waits for you: connect it."
	}
}

// connectError is why a line is down, for people.
func connectError(err error) *session.Error {
	var fault *tunnel.Fault
	var version *tunnel.VersionError
	var told *session.Error
	switch {
	case errors.As(err, &told):
		return told
	case errors.As(err, &fault):
		code := session.Code(fault.Code)
		return &session.Error{Code: code, Message: fault.Message, Hint: cmp.Or(fault.Hint, "Try again."), Err: err}
	case errors.As(err, &version) && version.Older():
		return &session.Error{Code: agentrpc.CodeVersion, Message: "The agent is too old to be used from here.",
			Hint: "Upgrade the agent.", Err: err}
	case errors.As(err, &version):
		return &session.Error{Code: agentrpc.CodeVersion, Message: "This program is too old to use the agent.",
			Hint: "Upgrade Slipway on this computer.", Err: err}
	case errors.Is(err, tunnel.ErrSilent), errors.Is(err, context.DeadlineExceeded):
		return &session.Error{Code: "agent_connect_timeout", Message: "The machine does not answer.",
			Hint: "Check that it is switched on and that this computer is in the right network.", Err: err}
	case errors.Is(err, tunnel.ErrClosedByPeer):
		return &session.Error{Code: "agent_connect_closed", Message: "The agent ended the connection.",
			Hint: "It may be starting anew; wait a moment.", Err: err}
	case errors.Is(err, tunnel.ErrDowngrade), errors.Is(err, tunnel.ErrHandshake):
		return &session.Error{Code: "agent_connect_protocol",
			Message: "What answers there is not a Slipway agent of this or a near version.",
			Hint:    "Upgrade the older side.", Err: err}
	}
	return &session.Error{Code: "agent_connect_failed", Message: "The connection was lost.",
		Hint: "Look at the network of both machines.", Err: err}
}

// question makes of a key that is not the one expected a question for a person.
func question(status tunnel.LineStatus) *hub.Question {
	if status.State != tunnel.LineQuestion {
		return nil
	}
	var key *secure.KeyError
	var host *sshstdio.HostKeyError
	switch {
	case errors.As(status.Err, &key):
		return &hub.Question{Kind: hub.QuestionRekeyed, Pinned: key.Expected, Found: key.Got, Asked: status.Since,
			Text: "The agent shows another key than the one it was paired with. Either it was set up anew, or " +
				"something else answers in its place. Compare the new key with slipway agent status on its machine."}
	case errors.As(status.Err, &host):
		return &hub.Question{Kind: hub.QuestionHostKey, Pinned: host.Where, Found: host.Fingerprint,
			Asked: status.Since,
			Text: "The machine shows another ssh key than the one that ssh knows of it. If it was set up anew, " +
				"accept, which removes the old key, and reconnect: you are asked about the new one."}
	}
	return nil
}

func (m *remote) Link() (hub.Link, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.link, m.changed
}

func (m *remote) Reconnect(ctx context.Context, work *hub.Work) error {
	if m.ssh != nil {
		defer m.ssh.asker.ask(work)()
	}
	return work.Do("connect", "Connect", func() (string, error) {
		err := m.line.Reconnect(ctx)
		if m.tls != nil && isCode(err, "agent_connect_not-paired") {
			if err = m.pairAgain(ctx, work); err == nil {
				err = m.line.Reconnect(ctx)
			}
		}
		if err != nil {
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			return "", connectError(err)
		}
		status, _ := m.line.Status()
		if status.RTT == 0 {
			return "Connected.", nil
		}
		return fmt.Sprintf("Connected, %.1f ms away.", float64(status.RTT.Microseconds())/1000), nil
	})
}

func isCode(err error, code string) bool {
	var fault *tunnel.Fault
	return errors.As(err, &fault) && fault.Code == code
}

func (m *remote) Answer(ctx context.Context, accept bool, found string) (string, error) {
	m.mu.Lock()
	question := m.link.Question
	m.mu.Unlock()
	switch {
	case question == nil || question.Found != found:
		return "", &session.Error{Code: "agent_answer_conflict", Message: "That is not what is asked of this agent.",
			Hint: "Look at its question again."}
	case !accept:
		return m.entry.Fingerprint, nil
	case question.Kind == hub.QuestionHostKey:
		return m.entry.Fingerprint, m.forgetHostKey(ctx)
	}
	if err := m.tls.expect(found); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerPatience)
	defer cancel()
	if err := m.line.Reconnect(ctx); err != nil {
		m.reacher.log.Info("an agent was accepted anew and is not reached", "agent", m.entry.ID, "error", err)
	}
	return found, nil
}

// forgetHostKey removes the key that ssh knows of the host. The next reconnection
// asks about the new one.
func (m *remote) forgetHostKey(ctx context.Context) error {
	status, _ := m.line.Status()
	var changed *sshstdio.HostKeyError
	if !errors.As(status.Err, &changed) {
		return &session.Error{Code: "agent_answer_conflict",
			Message: "That is not what is asked of this agent any more.", Hint: "Reconnect it."}
	}
	return asFault(m.ssh.Forget(ctx, changed))
}

// answerPatience is how long the answer to a question waits for the connection.
const answerPatience = 20 * time.Second

// keeper fails where the devices of an agent cannot be asked for from here.
func (m *remote) keeper() error {
	if m.ssh != nil {
		return nil
	}
	return &session.Error{Code: "agent_pair_unavailable",
		Message: "Devices are paired with this agent on its own machine.", Hint: "Log in there: slipway agent pair."}
}

func (m *remote) Audit(ctx context.Context, asked session.AuditQuery) ([]session.AuditEntry, error) {
	return m.client.Audit(ctx, asked)
}

func (m *remote) Limits(ctx context.Context) (map[string]session.Allowance, error) {
	return m.client.Limits(ctx)
}

func (m *remote) SetLimit(ctx context.Context, owner string, limit *session.Allowance) error {
	return m.client.SetLimit(ctx, owner, limit)
}

// knownDevices asks an agent that this computer is paired with.
func (m *remote) knownDevices(ctx context.Context) ([]daemon.Device, error) {
	known, err := m.client.KnownDevices(ctx)
	told := make([]daemon.Device, len(known))
	for i, d := range known {
		told[i] = daemon.Device{Key: d.Key, Name: d.Name, Owner: d.Owner, Role: string(d.Role), Added: d.Added,
			Seen: d.Seen, Live: d.Live}
	}
	return told, err
}

func (m *remote) PairedDevices(ctx context.Context) ([]hub.PairedDevice, error) {
	var told []daemon.Device
	var err error
	if m.ssh == nil {
		told, err = m.knownDevices(ctx)
	} else {
		err = provision.Ask(ctx, m.ssh, m.entry.Dir, &told, "devices")
	}
	if err != nil {
		return nil, err
	}
	own := ""
	if identity, err := m.reacher.identity(); err == nil {
		own = identity.Fingerprint()
	}
	devices := make([]hub.PairedDevice, len(told))
	for i, d := range told {
		devices[i] = hub.PairedDevice{Name: d.Name, Fingerprint: d.Key, Owner: d.Owner, Role: d.Role,
			This: d.Key == own, AddedAt: m.reacher.clock.At(d.Added), LastSeen: m.reacher.clock.At(d.Seen)}
	}
	return devices, nil
}

func (m *remote) RevokeDevice(ctx context.Context, fingerprint string) error {
	if !secure.ValidFingerprint(fingerprint) {
		return &session.Error{Code: "agent_revoke_not-found", Message: "That is not the key of a device.",
			Hint: "List them: slipway agent devices"}
	}
	if m.ssh == nil {
		return m.client.RevokeDevice(ctx, fingerprint)
	}
	return provision.Ask(ctx, m.ssh, m.entry.Dir, nil, "revoke", fingerprint)
}

func (m *remote) PairCode(ctx context.Context, owner, role string) (hub.PairCode, error) {
	if err := m.keeper(); err != nil {
		return hub.PairCode{}, err
	}
	args := []string{"pair"}
	if owner != "" {
		args = append(args, "--owner="+owner)
	}
	if role != "" {
		args = append(args, "--role="+role)
	}
	var code daemon.Code
	if err := provision.Ask(ctx, m.ssh, m.entry.Dir, &code, args...); err != nil {
		return hub.PairCode{}, err
	}
	return hub.PairCode{Code: code.Code, Address: "slipway://" + code.Address,
		ExpiresAt: m.reacher.clock.At(code.Expires)}, nil
}

// hostName is what this computer is called elsewhere.
func hostName() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return personName()
	}
	return name
}
