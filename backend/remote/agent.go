package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"slipway/backend/agentrpc"
	"slipway/backend/hub"
	"slipway/backend/pace"
	"slipway/backend/provision"
	"slipway/backend/session"
	"slipway/tunnel"
	"slipway/tunnel/sshstdio"
)

type agent struct {
	connector *Connector
	entry     hub.Entry
	listed    hub.Listed
	transport string
	line      *tunnel.Line
	client    *agentrpc.Client
	ssh       *sshConnection // nil: this computer is a paired client
	tls       *pinnedDialer  // nil: reached by ssh

	mu      sync.Mutex // guards the following fields
	link    hub.Link
	changed chan struct{}
	program string // last known version of the agent
	trouble error  // why the connected agent cannot be used
}

var _ hub.Remote = (*agent)(nil)

const (
	looksEvery     = 2 * time.Second  // how often the statistics of a connected line are read
	answerPatience = 20 * time.Second // how long Answer waits for the connection
)

// begin creates the line over a dialer.
func (a *agent) begin(transport string, dialer tunnel.Dialer) {
	a.transport = transport
	log := a.connector.config.Log.With("agent", a.entry.ID)
	if replace := a.connector.config.Dialer; replace != nil {
		dialer = replace(a.entry, dialer)
	}
	a.line = tunnel.NewLine(tunnel.LineConfig{Dialer: dialer, NeedsPerson: needsPerson, Log: log})
	a.client = agentrpc.NewClient(agentrpc.ClientConfig{Name: a.listed.Name, Opener: a.line,
		Distrust: a.listed.Distrust})
	a.link = hub.Link{State: hub.LinkOff, Since: a.connector.config.Clock.Now(), Transport: a.transport}
}

func (a *agent) Agent() session.Agent {
	agent := a.client.Agent()
	agent.Admin = admin{agent.Admin, a.connector.config.Clock}
	return agent
}

func (a *agent) Run(ctx context.Context) {
	defer a.connector.forget(a)
	var group sync.WaitGroup
	group.Go(func() { a.look(ctx) })
	_ = a.line.Run(ctx) // fails only as ctx does
	group.Wait()
	a.take(tunnel.LineStatus{State: tunnel.LineOff, Since: time.Now()})
	if a.ssh != nil {
		if err := a.ssh.Close(); err != nil {
			a.connector.config.Log.Warn("a connection did not close in good order", "agent", a.entry.ID, "error", err)
		}
	}
}

func (a *agent) look(ctx context.Context) {
	ticker := time.NewTicker(looksEvery)
	defer ticker.Stop()
	var met time.Time // connection time of the tunnel that was greeted
	var greeting sync.WaitGroup
	defer greeting.Wait()
	for {
		status, changed := a.line.Status()
		a.take(status)
		if status.State == tunnel.LineConnected && !status.Since.Equal(met) {
			met = status.Since
			greeting.Go(func() { a.greet(ctx) })
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-ticker.C:
		}
	}
}

func (a *agent) greet(ctx context.Context) {
	hello, err := a.client.Hello(ctx)
	a.mu.Lock()
	a.trouble = nil
	if err == nil {
		a.program = hello.Program
	} else if session.CodeOf(err) == session.CodeConnectVersion {
		a.trouble = err
	}
	a.mu.Unlock()
	status, _ := a.line.Status()
	a.take(status)
}

func (a *agent) Reconnect(ctx context.Context, work *hub.Work) error {
	if a.ssh != nil {
		defer a.ssh.asker.ask(work)()
	}
	return work.Do("connect", "Connect", func() (string, error) {
		err := a.line.Reconnect(ctx)
		fault, failed := errors.AsType[*tunnel.Fault](err)
		if a.tls != nil && failed && fault.Code == tunnel.CodeNotPaired {
			if err = a.pairAgain(ctx, work); err == nil {
				err = a.line.Reconnect(ctx)
			}
		}
		if err != nil {
			return "", cmp.Or(ctx.Err(), error(connectError(err)))
		}
		status, _ := a.line.Status()
		if status.RTT == 0 {
			return "Connected.", nil
		}
		return fmt.Sprintf("Connected, %.1f ms away.", float64(status.RTT.Microseconds())/1000), nil
	})
}

func (a *agent) Answer(ctx context.Context, accept bool, found string) (string, error) {
	a.mu.Lock()
	question := a.link.Question
	a.mu.Unlock()
	switch {
	case question == nil || question.Found != found:
		return "", session.NewError(session.CodeAgentConflict, "This question is not open.",
			"Read its current question.")
	case !accept:
		return a.entry.Fingerprint, nil
	case question.Kind == hub.QuestionHostKey:
		return a.entry.Fingerprint, a.forgetHostKey(ctx)
	}
	if err := a.tls.expect(found); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerPatience)
	defer cancel()
	if err := a.line.Reconnect(ctx); err != nil {
		a.connector.config.Log.Info("an agent was accepted again and is not reached", "agent", a.entry.ID, "error", err)
	}
	return found, nil
}

// forgetHostKey removes the known ssh key of the host. The next reconnection prompts for the new one.
func (a *agent) forgetHostKey(ctx context.Context) error {
	status, _ := a.line.Status()
	changed, ok := errors.AsType[*sshstdio.HostKeyError](status.Err)
	if !ok {
		return session.NewError(session.CodeAgentConflict, "This question is no longer open.",
			"Reconnect it.")
	}
	return agentrpc.FaultError(a.ssh.Forget(ctx, changed))
}

// admin converts times to the clock that people see.
type admin struct {
	session.Admin
	clock *pace.Clock
}

func (a admin) PairedClients(ctx context.Context) ([]session.PairedClient, error) {
	clients, err := a.Admin.PairedClients(ctx)
	for i := range clients {
		clients[i].Added, clients[i].Seen = a.clock.At(clients[i].Added), a.clock.At(clients[i].Seen)
	}
	return clients, err
}

func (a *agent) PairCode(ctx context.Context, request session.PairRequest) (code session.PairCode, err error) {
	if a.ssh == nil {
		return code, session.NewError(session.CodePairUnavailable,
			"Pair computers with this agent on its own machine.", "Log in there: slipway agent pair.")
	}
	args := []string{"pair"}
	if request.Owner != "" {
		args = append(args, "--owner="+request.Owner)
	}
	if request.Role != "" {
		args = append(args, "--role="+string(request.Role))
	}
	err = provision.Ask(ctx, a.ssh, a.entry.Dir, &code, args...)
	code.Address, code.Expires = "slipway://"+code.Address, a.connector.config.Clock.At(code.Expires)
	return code, err
}

func (a *agent) RotateKey(ctx context.Context) (rotated session.KeyRotation, err error) {
	if a.ssh == nil {
		return rotated, session.NewError(session.CodeAgentUnavailable,
			"Change the key of this agent on its own machine.", "Log in there: slipway agent rotate")
	}
	return rotated, provision.Ask(ctx, a.ssh, a.entry.Dir, &rotated, "rotate")
}
