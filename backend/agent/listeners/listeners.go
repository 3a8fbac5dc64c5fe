// Package listeners opens the ports on which clients reach the services of a machine: one of loopback for programs on
// the machine, and one with TLS for other computers, where the machine is set up for it.
package listeners

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/backend/store"
)

// Config says where to listen.
type Config struct {
	Dir     string // has the certificate that the machine makes itself
	Store   *store.Store
	Network session.NetworkListener
	// Listen opens a port of TCP. nil: [net.Listen] does.
	Listen func(network, address string) (net.Listener, error)
	Clock  *pace.Clock
	Log    *slog.Logger
}

// Listeners are the ports of a machine. Its methods are safe for concurrent use.
type Listeners struct {
	config      Config
	certificate certificate // of network

	mu     sync.Mutex // guards the rest
	ports  []*port
	opened []net.Listener // that were not taken yet
}

// port is one way in.
type port struct {
	session.ServiceAddress
	listen func() (net.Listener, error)
	open   bool
	retry  time.Time // not before
}

const (
	// retryPause is the time between two attempts to open a port that another program has.
	retryPause = 10 * time.Second
	// mostClients is the number of connections from other computers at a time. Others wait, so that strangers cannot
	// use up the file descriptors of the agent.
	mostClients = 2048
)

// Open reads or makes the certificate. It fails if that is impossible. No port is opened yet.
func Open(config Config) (*Listeners, error) {
	if config.Listen == nil {
		config.Listen = net.Listen
	}
	l := &Listeners{config: config}
	l.ports = []*port{{ServiceAddress: session.ServiceAddress{From: session.FromMachine}, listen: l.loopback}}
	if config.Network.Address == "" {
		return l, nil
	}
	var err error
	if l.certificate, err = openCertificate(config.Dir, config.Network); err != nil {
		return nil, err
	}
	l.ports = append(l.ports, &port{listen: l.network,
		ServiceAddress: session.ServiceAddress{From: session.FromNetwork, Certificate: l.certificate.toTrust}})
	return l, nil
}

// Open opens the ports that are not open yet. What cannot be opened is tried again by a later call.
func (l *Listeners) Open() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.config.Clock.Now()
	for _, p := range l.ports {
		if p.open || now.Before(p.retry) {
			continue
		}
		listener, err := p.listen()
		if err != nil {
			if p.Fault == "" {
				l.config.Log.Warn("a port for services cannot be opened", "from", p.From, "err", err)
			}
			p.retry, p.Fault = now.Add(retryPause), "The port cannot be opened: "+session.Clip(err.Error())
			continue
		}
		p.open, p.Fault, p.URL = true, "", l.url(p.From, listener.Addr())
		l.opened = append(l.opened, listener)
	}
}

// Take returns the listeners that were opened since the last call. The caller closes them at the end.
func (l *Listeners) Take() []net.Listener {
	l.mu.Lock()
	defer l.mu.Unlock()
	opened := l.opened
	l.opened = nil
	return opened
}

// Addresses returns where clients reach services, that of the machine itself first.
func (l *Listeners) Addresses() []session.ServiceAddress {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]session.ServiceAddress, len(l.ports))
	for i, p := range l.ports {
		list[i] = p.ServiceAddress
	}
	return list
}

// Named reports whether a name or address of a Host header is one of the machine's certificate.
func (l *Listeners) Named(host string) bool {
	return l.certificate.leaf != nil && l.certificate.leaf.VerifyHostname(host) == nil
}

// loopback listens on the same port as ever, so that clients keep their address; on another if a program has it.
func (l *Listeners) loopback() (net.Listener, error) {
	before, err := l.config.Store.ServicePort()
	if err != nil {
		return nil, err
	}
	listener, err := l.config.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(before)))
	if err != nil && before != 0 {
		l.config.Log.Warn("the port of services is in use, so they get another", "port", before)
		listener, err = l.config.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, err
	}
	if at, ok := listener.Addr().(*net.TCPAddr); ok && at.Port != before {
		if err := l.config.Store.SetServicePort(at.Port); err != nil {
			_ = listener.Close()
			return nil, err
		}
	}
	return listener, nil
}

func (l *Listeners) network() (net.Listener, error) {
	listener, err := l.config.Listen("tcp", l.config.Network.Address)
	if err != nil {
		return nil, err
	}
	return tls.NewListener(netutil.LimitListener(listener, mostClients), &tls.Config{MinVersion: tls.VersionTLS12,
		Certificates: []tls.Certificate{l.certificate.Certificate}, NextProtos: []string{"http/1.1"}}), nil
}

// url is the base of the API at an address.
func (l *Listeners) url(from session.AddressFrom, at net.Addr) string {
	base := url.URL{Scheme: "http", Host: at.String(), Path: "/v1"}
	if from == session.FromNetwork {
		host, port, _ := net.SplitHostPort(at.String())
		if ip := net.ParseIP(host); ip.IsUnspecified() || !l.Named(host) {
			host = l.certificate.name()
		}
		base.Scheme, base.Host = "https", net.JoinHostPort(host, port)
	}
	return base.String()
}
