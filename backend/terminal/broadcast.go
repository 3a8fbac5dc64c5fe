package terminal

import "sync"

// broadcast wakes everybody who waits for the next change.
type broadcast struct {
	mu   sync.Mutex
	next chan struct{} // guarded by mu; nil while nobody waits
}

// wait returns a channel that the next notify closes. Take it before looking at what may change.
func (b *broadcast) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}

func (b *broadcast) notify() {
	b.mu.Lock()
	next := b.next
	b.next = nil
	b.mu.Unlock()
	if next != nil {
		close(next)
	}
}
