// Package link emulates a network path between two network namespaces without netem: packets cross between TUN devices
// with a given rate, delay, queue and random loss. It needs Linux and root.
package link

import (
	"math/rand/v2"
	"time"
)

// Direction describes one direction of a path.
type Direction struct {
	Rate  float64       // bytes of packets per second; 0 for no limit
	Delay time.Duration // from the end of sending to arrival
	Queue int           // bytes that wait at most; further packets are dropped
	Loss  float64       // the share of packets that is lost at random, 0 to 1
}

// pipe computes one direction. Its clock is an argument.
type pipe struct {
	d      Direction
	random *rand.Rand
	free   time.Duration // when the sender will have sent all that it took
	flying []packet      // sent and not arrived, in order
}

type packet struct {
	data []byte
	due  time.Duration
}

// take adds a packet, or returns false if it is dropped.
func (p *pipe) take(data []byte, now time.Duration) bool {
	p.free = max(p.free, now)
	if p.d.Rate > 0 {
		waiting := (p.free - now).Seconds() * p.d.Rate
		if p.d.Queue > 0 && int(waiting)+len(data) > p.d.Queue {
			return false
		}
		p.free += time.Duration(float64(len(data)) / p.d.Rate * float64(time.Second))
	}
	if p.d.Loss > 0 && p.random.Float64() < p.d.Loss {
		return false
	}
	p.flying = append(p.flying, packet{data, p.free + p.d.Delay})
	return true
}

// due returns the next packet that has arrived, nil if there is none.
func (p *pipe) due(now time.Duration) []byte {
	if len(p.flying) == 0 || p.flying[0].due > now {
		return nil
	}
	data := p.flying[0].data
	p.flying[0].data = nil
	p.flying = p.flying[1:]
	return data
}

// next returns the time until the next packet arrives, an hour if there is none.
func (p *pipe) next(now time.Duration) time.Duration {
	if len(p.flying) == 0 {
		return time.Hour
	}
	return max(p.flying[0].due-now, 0)
}
