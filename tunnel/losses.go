package tunnel

import (
	"math/bits"
	"time"
)

// The kernel knows what it had to send again. A path loses packets without congestion when some were lost in two of the
// last spans while hardly anything waited in its queue: a full queue loses packets too, and a single one may be a
// mishap.
const (
	lossSpan   = 200 * time.Millisecond
	lossSpans  = 25
	lossEnough = 2
	lossQueue  = 10 * time.Millisecond
)

// seen is what the kernel knows of the path of a connection. It hears of every packet that arrives, also of those
// behind one that was lost.
type seen struct {
	known    bool
	again    int           // packets sent again, ever
	needless int           // of them, that had arrived the first time
	queue    time.Duration // the round trip beyond the shortest: both directions' queues
}

// losses finds out whether a path loses packets without congestion.
type losses struct {
	at    time.Time     // when the span began
	again int           // packets sent again by then, which the peer has had time to complain of since
	queue time.Duration // the longest in the span
	full  bool          // it was long in the span before
	lost  int           // packets that were lost, ever
	spans uint32        // a bit for each of the last ones, set when packets were lost in it
}

// look adds what the kernel has seen and reports whether that was the last of enough losses.
func (l *losses) look(s seen, now time.Time) bool {
	l.queue = max(l.queue, s.queue)
	if now.Sub(l.at) < lossSpan {
		return false
	}
	full := l.full || l.queue > lossQueue
	l.full, l.queue = l.queue > lossQueue, 0
	l.spans = l.spans << 1 & (1<<lossSpans - 1)
	lost := l.again - s.needless
	mishap := lost > l.lost && !full
	l.lost = max(l.lost, lost)
	l.at, l.again = now, s.again
	if mishap {
		l.spans |= 1
	}
	return mishap && bits.OnesCount32(l.spans) >= lossEnough
}
