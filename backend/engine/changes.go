package engine

import (
	"context"
	"sync"
)

// Changes is the queue between an engine in this process and one Watch. Whoever pushes never waits for the watcher.
type Changes struct {
	mu    sync.Mutex // guards queue and ended
	queue []State
	ended bool
	wake  chan struct{} // capacity 1
}

// NewChanges returns an empty queue.
func NewChanges() *Changes { return &Changes{wake: make(chan struct{}, 1)} }

// Push adds a state. It never blocks.
func (c *Changes) Push(state State) {
	c.mu.Lock()
	c.queue = append(c.queue, state)
	c.mu.Unlock()
	c.poke()
}

// End makes Follow return after the queued states.
func (c *Changes) End() {
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	c.poke()
}

// Follow calls fn for each state in order, one at a time. It returns nil after End, and ctx's cause if ctx ends first.
func (c *Changes) Follow(ctx context.Context, fn func(State)) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.wake:
		}
		states, ended := c.take()
		for _, state := range states {
			fn(state)
		}
		if ended {
			return nil
		}
	}
}

func (c *Changes) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *Changes) take() (states []State, ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	states, c.queue = c.queue, nil
	return states, c.ended
}
