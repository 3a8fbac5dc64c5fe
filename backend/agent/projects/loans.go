package projects

import (
	"context"
	"crypto/subtle"
	"errors"
	"net"
	"net/url"
	"slices"
	"sync"
	"time"

	"slipway/backend/engine"
	"slipway/backend/session"
)

const (
	untakenMost  = 32               // connections of the steps of one build that wait for its proxy
	untakenFor   = 30 * time.Second // that such a connection waits
	acceptPause  = 100 * time.Millisecond
	proxyAccount = "slipway" // user name in the address of each proxy
)

// loans are the builds whose steps reach the internet through another computer.
type loans struct {
	mu  sync.Mutex // guards all
	all []*loan
}

// loan is where the steps of one build connect to. It understands nothing of what they say: their proxy, on the other
// computer, does, and asks them for the token.
type loan struct {
	folder   session.FolderID
	token    session.ProxyToken
	listener net.Listener
	arrived  chan net.Conn
	untaken  chan struct{}
	running  func() context.Context // until the build ends
}

// begin opens the loan of a build, and tells the build of it. end closes it, with all of its connections.
func (l *loans) begin(folder session.FolderID, token session.ProxyToken, b *engine.Build) (end func(), err error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, session.WrapError(err, session.CodeAgentInternal, "The proxy of the build cannot be opened.",
			"Look at the agent's log.")
	}
	running, stop := context.WithCancel(context.Background())
	one := &loan{folder: folder, token: token, listener: listener, arrived: make(chan net.Conn),
		untaken: make(chan struct{}, untakenMost), running: func() context.Context { return running }}
	b.Proxy = &url.URL{Scheme: "http", Host: listener.Addr().String(),
		User: url.UserPassword(proxyAccount, string(token))}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, one)
	go one.accept()
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = slices.DeleteFunc(l.all, func(other *loan) bool { return other == one })
		stop()
		_ = listener.Close()
	}, nil
}

// accept offers each connection to who lends theirs, until the build ends.
func (l *loan) accept() {
	for {
		conn, err := l.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(acceptPause) // this machine has no file descriptor left
			continue
		}
		context.AfterFunc(l.running(), func() { conn.Close() })
		select {
		case l.untaken <- struct{}{}:
			go l.offer(conn)
		default:
			conn.Close()
		}
	}
}

func (l *loan) offer(conn net.Conn) {
	defer func() { <-l.untaken }()
	timer := time.NewTimer(untakenFor)
	defer timer.Stop()
	select {
	case l.arrived <- conn:
	case <-timer.C:
		conn.Close()
	case <-l.running().Done():
	}
}

// find returns the loan with a token, nil if there is none.
func (l *loans) find(folder session.FolderID, token session.ProxyToken) *loan {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.all {
		if subtle.ConstantTimeCompare([]byte(one.token), []byte(token)) == 1 && one.folder == folder {
			return one
		}
	}
	return nil
}

// LendConnection implements [session.Projects].
func (p *Projects) LendConnection(ctx context.Context, folder session.FolderID,
	token session.ProxyToken) (net.Conn, error) {
	over := session.NewError(session.CodeOperationNotFound, "There is no build that uses this connection.",
		"It may have ended. Build the image again.")
	one := p.loans.find(folder, token)
	if one == nil {
		return nil, over
	}
	select {
	case conn := <-one.arrived:
		return conn, nil
	case <-one.running().Done():
		return nil, over
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
