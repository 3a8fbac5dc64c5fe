package terminal

import "sync"

// broadcast wakes all goroutines that wait for the next change.
type broadcast struct {
	mu   sync.Mutex
	next chan struct{} // guarded by mu; nil: none waits
}

// wait returns a channel that the next notify closes. Call it before reading the state that may change.
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
