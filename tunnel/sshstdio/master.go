package sshstdio

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"sync"
)

// master is a connection that sessions share, so that a person is asked once.
type master struct {
	carrier *carrier // its own session: a command that waits for us to go
	socket  string
	asked   bool // logging in took a secret
	ridden  bool // a carrier has used it; guarded by Remote.mu
	ending  sync.Once
}

func (m *master) close() {
	m.ending.Do(func() {
		_ = m.carrier.Close()
		_ = os.Remove(m.socket)
	})
}

func (m *master) alive() bool {
	select {
	case <-m.carrier.child.done:
		return false
	default:
		return true
	}
}

// takeMaster returns the shared connection for a carrier to ride on, nil unless it stands, spares a person a question,
// and has not been ridden on before.
func (r *Remote) takeMaster() *master {
	r.mu.Lock()
	m := r.master
	if m == nil {
		r.mu.Unlock()
		return nil
	}
	if m.alive() && m.asked && !m.ridden {
		m.ridden = true
		r.mu.Unlock()
		return m
	}
	dead := !m.alive()
	if dead || m.ridden {
		r.master = nil // one that is ridden on lives as long as what rides
	}
	r.mu.Unlock()
	if dead {
		m.close()
	}
	return nil
}

// drop ends a shared connection that has failed.
func (r *Remote) drop(m *master) {
	r.mu.Lock()
	if r.master == m {
		r.master = nil
	}
	r.mu.Unlock()
	m.close()
}

// shared returns by which connection a command goes, logging in if none stands.
func (r *Remote) shared(ctx context.Context) (way, error) {
	if err := r.enter(ctx); err != nil {
		return way{}, err
	}
	defer r.leave()
	r.mu.Lock()
	m := r.master
	r.mu.Unlock()
	if m != nil && m.alive() {
		return way{socket: m.socket, patient: true}, nil
	}
	known, err := r.inspect(ctx)
	if err != nil {
		return way{}, err
	}
	if known.masterIsUp {
		return way{socket: known.controlPath, patient: true}, nil
	}
	if runtime.GOOS == "windows" { // its ssh cannot share connections
		return way{strict: known.strict, patient: true}, nil
	}
	m, err = r.login(ctx, known)
	if err != nil {
		return way{}, err
	}
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		m.close()
		return way{}, os.ErrClosed
	}
	r.master = m
	r.mu.Unlock()
	return way{socket: m.socket, patient: true}, nil
}

// login opens a connection to share, asking what ssh asks.
func (r *Remote) login(ctx context.Context, known knowledge) (*master, error) {
	asking, err := r.listenForQuestions(ctx)
	if err != nil {
		return nil, err
	}
	defer asking.close()
	socket := filepath.Join(r.folder, "m"+newMark()[len("slipway-"):][:8])
	options := r.options(way{lead: true, socket: socket, strict: known.strict, patient: true})
	c, err := r.start(ctx, options, []string{"cat"}, asking) // cat ends when we do, however we do
	if err != nil {
		return nil, err
	}
	return &master{carrier: c, socket: socket, asked: asking.answeredSecret()}, nil
}
