package projects

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/engine"
	"slipway/backend/session"
)

const token session.ProxyToken = "TESTTESTTESTTESTTESTTESTTE"

// lent begins a build with a proxy, which ends with the test or before.
func lent(t *testing.T) (p *Projects, proxy *url.URL, end func()) {
	t.Helper()
	p = New(nil, nil, nil)
	var b engine.Build
	end, err := p.loans.begin("folder", token, &b)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	return p, b.Proxy, end
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func wantOver(t *testing.T, what string, err error) {
	t.Helper()
	if session.CodeOf(err) != session.CodeOperationNotFound {
		t.Errorf("%s: %v", what, err)
	}
}

func TestAStepIsConnectedWithWhoLends(t *testing.T) {
	p, proxy, _ := lent(t)
	if proxy.Hostname() != "127.0.0.1" || proxy.User.String() != "slipway:"+string(token) {
		t.Errorf("the proxy is %s", proxy)
	}
	step := dial(t, proxy.Host)
	for what, of := range map[string]struct {
		folder session.FolderID
		token  session.ProxyToken
	}{"another token": {"folder", token + "A"}, "no token": {"folder", ""}, "another folder": {"other", token}} {
		_, err := p.LendConnection(t.Context(), of.folder, of.token)
		wantOver(t, what, err)
	}
	conn, err := p.LendConnection(t.Context(), "folder", token)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(step, "hello"); err != nil {
		t.Fatal(err)
	}
	step.(*net.TCPConn).CloseWrite() //nolint:errcheck // what arrives shows it
	if heard, err := io.ReadAll(conn); string(heard) != "hello" || err != nil {
		t.Errorf("of the step arrived %q, %v", heard, err)
	}
	if _, err := io.WriteString(conn, "welcome"); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if heard, err := io.ReadAll(step); string(heard) != "welcome" || err != nil {
		t.Errorf("at the step arrived %q, %v", heard, err)
	}
}

func TestWhoLendsMayLeave(t *testing.T) {
	p, _, _ := lent(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.LendConnection(ctx, "folder", token); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended as %v", err)
	}
}

func TestTheEndOfABuildEndsItsConnections(t *testing.T) {
	p, proxy, end := lent(t)
	taken := dial(t, proxy.Host)
	conn, err := p.LendConnection(t.Context(), "folder", token)
	if err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error)
	go func() {
		_, err := p.LendConnection(t.Context(), "folder", token)
		waiting <- err
	}()
	end()
	wantOver(t, "who waits", <-waiting)
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("reading from a step after the end: %v", err)
	}
	if _, err := taken.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection of the step ended as %v", err)
	}
	if _, err := net.Dial("tcp", proxy.Host); err == nil {
		t.Error("the proxy still listens")
	}
	_, err = p.LendConnection(t.Context(), "folder", token)
	wantOver(t, "after the end", err)
}

// Anybody on the machine can connect, so who does cannot make the agent hold any number of connections.
func TestFewConnectionsWait(t *testing.T) {
	p, proxy, _ := lent(t)
	for range untakenMost {
		dial(t, proxy.Host)
	}
	if _, err := dial(t, proxy.Host).Read(make([]byte, 1)); err == nil {
		t.Errorf("one more than %d waits", untakenMost)
	}
	for range untakenMost {
		if _, err := p.LendConnection(t.Context(), "folder", token); err != nil {
			t.Fatal(err)
		}
	}
	places := p.loans.all[0].untaken
	for range untakenMost { // waits until each has left
		places <- struct{}{}
	}
	for range untakenMost {
		<-places
	}
	dial(t, proxy.Host)
	if _, err := p.LendConnection(t.Context(), "folder", token); err != nil {
		t.Errorf("after they were taken: %v", err)
	}
}

func TestAConnectionThatNobodyTakesIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		one := &loan{arrived: make(chan net.Conn), untaken: make(chan struct{}, 1),
			running: func() context.Context { return ctx }}
		near, far := net.Pipe()
		one.untaken <- struct{}{}
		began := time.Now()
		go one.offer(far)
		if _, err := near.Read(make([]byte, 1)); !errors.Is(err, io.EOF) || time.Since(began) != untakenFor {
			t.Errorf("it ended after %s as %v", time.Since(began), err)
		}
	})
}
