package guests

import (
	"context"
	"errors"
	"sync"
	"time"

	"slipway/backend/agent/host"
	"slipway/backend/engine"
	"slipway/backend/guest/link"
	"slipway/backend/pace"
	"slipway/backend/session"
)

// Link keeps one connection to a container's guest, and makes it again when it is lost, until it is dropped.
type Link struct {
	kernel    string
	container string
	cancel    context.CancelFunc
	ended     chan struct{} // closed when its goroutine has ended

	mu      sync.Mutex // guards everything below
	client  *Client    // nil while there is none
	heard   bool       // there was a client
	ready   bool       // the guest has set up the container
	failure error      // why there will be no client any more
	changed chan struct{}
}

// Links are the links to the guests of one session.
type Links struct {
	guests   *Guests
	session  session.ID
	listener Listener

	mu    sync.Mutex       // guards links
	links map[string]*Link // by kernel
}

// Ensure returns the link to the guest of a kernel's container, and makes it if there is none.
func (l *Links) Ensure(kernel, container string) *Link {
	l.mu.Lock()
	current := l.links[kernel]
	if current != nil && current.container == container {
		l.mu.Unlock()
		return current
	}
	ctx, cancel := context.WithCancel(context.Background())
	k := &Link{kernel: kernel, container: container, cancel: cancel, ended: make(chan struct{}),
		changed: make(chan struct{})}
	l.links[kernel] = k
	l.mu.Unlock()
	if current != nil {
		current.drop()
	}
	go func() {
		defer close(k.ended)
		l.connect(ctx, k)
	}()
	return k
}

// Drop ends all links and waits until they have ended. New ones can be made.
func (l *Links) Drop() {
	l.mu.Lock()
	links := l.links
	l.links = map[string]*Link{}
	l.mu.Unlock()
	for _, k := range links {
		k.cancel()
	}
	for _, k := range links {
		k.drop()
	}
}

func (l *Links) Close() {
	l.Drop()
	l.guests.mu.Lock()
	defer l.guests.mu.Unlock()
	if l.guests.sessions[l.session] == l {
		delete(l.guests.sessions, l.session)
	}
}

// to returns the link to a kernel's guest, nil if there is none.
func (l *Links) to(kernel string) *Link {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.links[kernel]
}

func (k *Link) drop() {
	k.cancel()
	<-k.ended
}

// update changes the link's state and wakes whoever waits for it.
func (k *Link) update(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
	close(k.changed)
	k.changed = make(chan struct{})
}

// await waits until done reports true or the link has failed. done is called with mu locked.
func (k *Link) await(ctx context.Context, done func() bool) error {
	for {
		k.mu.Lock()
		ok, failure, changed := done(), k.failure, k.changed
		k.mu.Unlock()
		if ok {
			return nil
		}
		if failure != nil {
			return failure
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (k *Link) AwaitReady(ctx context.Context) error {
	return k.await(ctx, func() bool { return k.ready })
}

// connect connects to the guest and listens to it, again and again, until ctx or the container ends.
func (l *Links) connect(ctx context.Context, k *Link) {
	const shortest, longest = 50 * time.Millisecond, 5 * time.Second
	wait := shortest
	for ctx.Err() == nil {
		client, err := l.guests.dial(ctx, k.container)
		if err == nil {
			wait = shortest
			k.update(func() { k.client, k.heard = &client, true })
			err = l.listen(ctx, k, client)
			k.update(func() { k.client = nil })
			client.Close() //nolint:errcheck // it is lost or dropped
			l.listener.Changed()
		}
		switch code := session.CodeOf(err); {
		case ctx.Err() != nil:
		case code == session.CodeGuestExited || code == session.CodeNoContainer || host.Lasting(code):
			k.update(func() { k.failure = err })
			l.listener.Changed()
			return
		case engine.Unavailable(err):
			l.guests.config.Health.Heed(err) //nolint:errcheck // the loop tries again
		}
		_ = pace.Wall().Pause(ctx, wait) // an end of ctx ends the loop
		wait = min(2*wait, longest)
	}
	k.update(func() {
		if k.failure == nil {
			k.failure = session.NewError(session.CodeSessionUnavailable, "The connection into the session was closed.",
				"Look whether the session still runs.")
		}
	})
}

func (g *Guests) dial(ctx context.Context, container string) (Client, error) {
	conn, err := g.config.Engine.Guest(ctx, container)
	if err != nil {
		return Client{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, g.config.Limits.Guest)
	defer cancel()
	return g.config.Connect(ctx, conn)
}

// listen passes on the guest's events until the connection is lost.
func (l *Links) listen(ctx context.Context, k *Link, client Client) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { client.Close() }) //nolint:errcheck // it is dropped
	defer stop()
	err := client.Events(ctx, func(e link.Event) error {
		switch {
		case e.Ready:
			k.update(func() { k.ready = true })
		case e.Exit != nil && k.kernel == session.MainKernel:
			l.listener.Ended()
		case e.OOM > 0:
			l.listener.OutOfMemory(k.kernel, e.OOM)
		case e.Error != nil:
			l.listener.Trouble(*e.Error)
		}
		return nil
	})
	if err == nil {
		<-client.Done()
		err = errors.New("the guest has ended")
	}
	return err
}

// AwaitSilence waits until the link of a kernel that has ended is lost, so that all of its guest's events are known.
func (l *Links) AwaitSilence(ctx context.Context, kernel string) {
	k := l.to(kernel)
	if k == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = k.await(ctx, func() bool { return k.client == nil && k.heard }) // after the timeout, what is known must do
}
