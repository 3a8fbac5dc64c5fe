package tunnel

import (
	"math/bits"
	"slices"
	"time"
)

// Sizes and times of a [gate].
const (
	gateTarget  = 5 * time.Millisecond  // of queue in the path
	gateGentle  = time.Millisecond      // of queue where the path loses packets
	gateLossy   = 10 * time.Second      // that one lost packet is remembered
	gateFloor   = 8 << 10               // the least window, in bytes
	gateFirst   = 32 << 10              // the first window, in bytes
	gateMost    = 32 << 20              // the greatest window, in bytes
	gateNear    = 2 * time.Millisecond  // a shorter round trip is a local network
	gateWide    = 256 << 10             // the least window there, in bytes
	gateSpan    = 10 * time.Millisecond // of the greatest rate, that the window holds there at least
	gateRelearn = 10 * time.Second      // between two drains
	gateMemory  = 35 * time.Second      // that a drain is remembered
	gateDoubt   = 8                     // rounds with too long a queue that make one due sooner
	gateAgain   = 2 * time.Second       // but no sooner than this after the last

	gateBurst  = 2 * time.Millisecond   // of bytes that may go at once
	leastPause = 200 * time.Microsecond // worth a timer
	frameTime  = time.Millisecond       // that a paced frame may take on the wire
	leastFrame = 4 << 10                // in bytes
	maxWays    = 64                     // samples of one round that count
	growthEnd  = 3                      // samples with a queue, in a row, that end the search for the path's rate
)

// gate decides how many paced bytes may be in flight over one carrier. The peer answers every mark; from the time that
// takes the gate knows how full the path's queue is, and keeps the bytes without an answer in a window that aims at 5
// ms of queue. See SPEC.md, "The gate". It is only arithmetic: the carrier's mutex guards it and its clock is an
// argument.
type gate struct {
	start  time.Time
	window int
	sent   uint64 // bytes, ever
	marked uint64 // sent before the last mark
	acked  uint64 // known to have arrived
	marks  []mark // without an answer, oldest first
	baseline
	lossView
	growth
	lap
	drainage

	budget   float64   // bytes that may go at once
	budgetAt time.Time // when budget was last filled up
}

// baseline is what is known of the path.
type baseline struct {
	base   time.Duration // round trip without a queue; 0 while unknown
	way    time.Duration // usual one-way time without a queue, on two clocks that were never compared
	baseAt time.Time     // when both were last measured in a drain, or first
	rate   float64       // bytes per second of the last full round
}

// lossView is what is known of lost packets.
type lossView struct {
	losses losses
	lossy  time.Time // until when the path counts as one that loses packets
	seen   seen      // by the kernel, last
	mended uint64    // bytes sent before the kernel last resent something
}

// growth is how the window changes.
type growth struct {
	growing bool // still looking for the path's rate
	limited bool // the window held bytes back in this round
	low     int  // rounds in a row that were limited and saw an empty queue
	high    int  // rounds in a row that saw a queue beyond the target
	full    int  // samples in a row that saw a queue beyond the target, while growing
	hold    bool // ignore the next round, which was sent in an earlier window
	peak    float64
}

// lap is the current round.
type lap struct {
	roundEnd   uint64 // the round is over when this many bytes are acknowledged
	roundStart time.Time
	roundAcked uint64
	roundLeast time.Duration   // the shortest round trip in this round; 0 if none
	ways       []time.Duration // one-way times in this round
}

// drainage is the state of drains, which measure the baseline again.
type drainage struct {
	draining int // rounds left in this drain
	undrain  int // the window to return to
	drained  int
	drains   [3]drain // results of the last ones
}

type drain struct {
	base, way time.Duration
	at        time.Time
}

// mark is one mark without an answer.
type mark struct {
	offset uint64
	at     time.Time
}

func newGate(start time.Time) gate {
	return gate{start: start, window: gateFirst, growth: growth{growing: true}}
}

// open reports whether a paced frame may go now. If not, the round is limited.
func (g *gate) open() bool {
	if int(g.sent-g.acked) < g.window {
		return true
	}
	g.limited = true
	return false
}

// pause returns how long a paced frame must wait so that the window goes out evenly. When the peer sends bulk too,
// answers come in lumps, and without pauses each lump would cause a burst that delays the peer's answers.
func (g *gate) pause(now time.Time) time.Duration {
	if g.base == 0 || g.near() {
		return 0
	}
	rate := g.pacing()
	g.budget = min(g.budget+now.Sub(g.budgetAt).Seconds()*rate, rate*gateBurst.Seconds())
	g.budgetAt = now
	if g.budget > 0 {
		return 0
	}
	return max(time.Duration(-g.budget/rate*float64(time.Second)), leastPause)
}

// pacing is the rate at which a window goes out, in bytes per second.
func (g *gate) pacing() float64 {
	rate := 1.25 * float64(g.window) / (g.base + gateTarget).Seconds()
	if g.growing {
		rate *= 2
	}
	return rate
}

// kernelRate is the rate that the kernel must keep to, in bytes per second; 0: any. Where packets are lost, what waited
// behind one is acknowledged in a lump, and the kernel would send as large a lump at once.
func (g *gate) kernelRate(now time.Time) uint64 {
	if g.kind(now) != pathLossy {
		return 0
	}
	return uint64(g.pacing())
}

// spend counts paced bytes as sent.
func (g *gate) spend(n int) {
	g.sent += uint64(n)
	g.budget -= float64(n)
}

// frame returns how many bytes a paced frame should have at most.
func (g *gate) frame() int {
	if g.near() {
		return MaxFrame
	}
	n := int(g.rate * frameTime.Seconds())
	return min(max(n, leastFrame), MaxFrame/2)
}

// near reports whether the path is too short for the gate to pace.
func (g *gate) near() bool { return g.base > 0 && g.base < gateNear }

// batch returns how many bytes are written at once on a short path: what it carries in the time of one frame on a long
// one, within bounds.
func (g *gate) batch() int {
	return min(max(int(g.rate*frameTime.Seconds()), batchNear), batchQuick)
}

// quick reports whether the path carries a whole batch in the time of one frame on a long path.
func (g *gate) quick() bool {
	return g.near() && g.rate*frameTime.Seconds() >= batchNear
}

// due reports whether the bytes since the last mark ask for another.
func (g *gate) due() bool {
	return int(g.sent-g.marked) >= max(g.window/16, leastFrame)
}

// idle reports whether no paced byte is on its way.
func (g *gate) idle() bool { return g.sent == g.acked }

// loose reports whether any byte has no mark behind it.
func (g *gate) loose() bool { return g.sent > g.marked }

// mark adds a mark that is sent now and returns its number.
func (g *gate) mark(now time.Time) uint64 {
	g.marked = g.sent
	g.marks = append(g.marks, mark{g.sent, now})
	return g.sent
}

// ack handles the peer's answer to mark v and all marks before it; at is when the mark arrived by the peer's clock. It
// reports false for a mark that was never sent.
func (g *gate) ack(v uint64, at time.Duration, now time.Time) bool {
	if v > g.marked {
		return false
	}
	i := 0
	for i < len(g.marks) && g.marks[i].offset <= v {
		i++
	}
	if i == 0 {
		return true // an old answer that came late
	}
	last := g.marks[i-1]
	g.marks = g.marks[:copy(g.marks, g.marks[i:])]
	g.acked = max(g.acked, last.offset)
	if last.offset == v {
		g.sample(now.Sub(last.at), at-last.at.Sub(g.start), now)
	}
	if g.acked >= g.roundEnd {
		g.endRound(now)
	}
	return true
}

// sample adds a measured round trip and one-way time. Only the latter shows this side's queue: the answer may wait
// behind the peer's bulk.
func (g *gate) sample(rtt, way time.Duration, now time.Time) {
	rtt = max(rtt, time.Microsecond)
	if g.base == 0 {
		g.base, g.way, g.baseAt = rtt, way, now
	}
	if g.roundLeast == 0 {
		g.roundLeast = rtt
	}
	g.base, g.roundLeast = min(g.base, rtt), min(g.roundLeast, rtt)
	if g.near() { // else a single frame could fill the window, and no round would ever be whole
		g.window = max(g.window, g.floor())
	}
	if g.acked <= g.mended {
		return // it waited for what was sent again before it
	}
	if way-g.way <= g.target(now) {
		g.full = 0
	} else if g.growing {
		g.full++
	}
	if len(g.ways) < maxWays {
		g.ways = append(g.ways, way)
	}
}

func (g *gate) see(s seen, now time.Time) {
	if s.again > g.seen.again {
		g.mended = g.sent
	}
	g.seen = s
	if g.losses.look(s, now) {
		g.lost(now)
	}
}

// endRound moves the window by what the last round saw and begins the next.
func (g *gate) endRound(now time.Time) {
	if took := now.Sub(g.roundStart); !g.roundStart.IsZero() && g.roundLeast > 0 {
		// Answers that come in a lump make a round look shorter than it was.
		rate := float64(g.acked-g.roundAcked) / max(took, g.base).Seconds()
		rate = min(rate, float64(g.window)/g.roundLeast.Seconds())
		if g.limited && len(g.ways) > 0 || rate > g.rate {
			g.rate = rate
		}
		g.adapt(now)
	}
	g.roundStart, g.roundAcked, g.roundEnd = now, g.acked, g.sent
	if g.roundEnd == g.acked {
		g.roundEnd++ // nothing is on its way: the round ends with what comes next
		g.roundStart = time.Time{}
	}
	g.roundLeast, g.limited, g.ways = 0, false, g.ways[:0]
}

func (g *gate) adapt(now time.Time) {
	g.peak = max(g.rate, g.peak*0.98)
	queue := g.queue(now)
	if g.draining > 0 {
		g.endDrain(g.way+queue, now)
		return
	}
	if g.hold { // what this round saw was sent in the window before the last cut
		g.hold = false
		return
	}
	g.follow(queue, g.target(now), now)
	if g.near() || !g.limited {
		return
	}
	if since := now.Sub(g.baseAt); since >= gateRelearn || g.high >= gateDoubt && since >= gateAgain {
		g.startDrain()
	}
}

// queue returns how long paced bytes waited in the last round, by the median: the shortest time would miss the queue of
// a burst after answers in a lump, the longest would include every hiccup of a busy machine. Where packets are lost
// only the kernel knows the queue, since it sends at its own rate and bytes may wait there while the path is free.
func (g *gate) queue(now time.Time) time.Duration {
	if len(g.ways) == 0 {
		return g.seen.queue
	}
	slices.Sort(g.ways)
	way := g.ways[len(g.ways)/2]
	g.way = min(g.way, way)
	if g.seen.known && now.Before(g.lossy) {
		return min(way-g.way, g.seen.queue)
	}
	return way - g.way
}

// follow moves the window. In the long run it follows FAST TCP's rule without its averaging, but never cuts below what
// the path has carried without a queue.
func (g *gate) follow(queue, target time.Duration, now time.Time) {
	w := float64(g.window)
	next := w*g.base.Seconds()/(g.base+queue).Seconds() + g.rate*target.Seconds()
	if g.full >= growthEnd { // the queue began to fill in this round
		next = g.rate * (g.base + target).Seconds()
		g.growing, g.low, g.full = false, 0, 0
	}
	switch {
	case queue > target:
		next = max(next, g.peak*g.base.Seconds())
		g.growing, g.low = false, 0
		g.high++
	case !g.limited:
		return // less is being sent than the path could carry
	case queue < target/4:
		g.high = 0
		g.low++
	default:
		g.low, g.high = 0, 0
	}
	if g.limited && g.growing {
		next = max(next, w*1.5)
	} else if g.limited && now.Before(g.lossy) && queue < target {
		next = max(next, w*1.05)
	} else if g.limited && g.low >= 6 {
		next = max(next, w*1.25)
	}
	g.window = min(max(int(min(next, 2*w)), g.floor()), gateMost)
	g.hold = float64(g.window) < 0.95*w
}

// lost handles losses. With so short a queue it is the path that loses packets, not a full queue. There bulk waits for
// resent packets anyway, so that a queue does not help it.
func (g *gate) lost(now time.Time) { g.lossy = now.Add(gateLossy) }

func (g *gate) kind(now time.Time) pathKind {
	switch {
	case g.base == 0:
		return pathUnknown
	case g.near():
		return pathShort
	case now.Before(g.lossy):
		return pathLossy
	}
	return pathLong
}

func (g *gate) target(now time.Time) time.Duration {
	if now.Before(g.lossy) {
		return gateGentle
	}
	return gateTarget
}

func (g *gate) floor() int {
	if g.near() {
		return min(max(gateWide, int(g.peak*gateSpan.Seconds())), gateMost)
	}
	return gateFloor
}

// startDrain lets this side's queue run empty for a round, to measure the path without it.
func (g *gate) startDrain() {
	g.undrain, g.draining, g.high = g.window, 2, 0
	g.window = max(int(g.rate*g.base.Seconds()/2), gateFloor)
}

// endDrain ends a drain after a round that was sent wholly in it. The shortest of the last drains counts, since in one
// there may have been somebody else's queue.
func (g *gate) endDrain(way time.Duration, now time.Time) {
	if g.draining--; g.draining > 0 {
		return
	}
	if len(g.ways) == 0 {
		g.window, g.baseAt = g.undrain, now // nothing was learned
		return
	}
	g.drains[g.drained%len(g.drains)] = drain{g.roundLeast, way, now}
	g.drained++
	g.base, g.way, g.baseAt = g.roundLeast, way, now
	for _, d := range g.drains {
		if now.Sub(d.at) < gateMemory { // clocks drift and paths change
			g.base, g.way = min(g.base, d.base), min(g.way, d.way)
		}
	}
	g.window = g.undrain
}

// A path loses packets without congestion when some were lost in lossEnough of the last lossSpans while its queue was
// shorter than lossQueue: a full queue loses packets too, and a single loss may be a mishap.
const (
	lossSpan   = 200 * time.Millisecond
	lossSpans  = 25
	lossEnough = 2
	lossQueue  = 10 * time.Millisecond
)

// seen is what the kernel knows of the path, by every packet that arrives, also those behind a lost one.
type seen struct {
	known    bool
	again    int           // packets resent, ever
	needless int           // of them, packets that had arrived the first time
	queue    time.Duration // the round trip beyond the shortest: the queues of both directions
}

// losses finds out whether a path loses packets without congestion.
type losses struct {
	at    time.Time     // when the span began
	again int           // packets resent by then; since then the peer has had time to report needless ones
	queue time.Duration // the longest in the span
	full  bool          // queue was long in the span before
	lost  int           // packets lost, ever
	spans uint32        // one bit for each of the last ones, set when packets were lost in it
}

// look adds what the kernel has seen and reports whether losses are now enough.
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
