package session

import (
	"math"
	"slices"
	"time"

	"slipway/gpu"
)

// Kinds of rows in the accounts of services.
const (
	AccountRequests = "requests" // what was asked of a revision with one token
	AccountReplicas = "replicas" // what the sessions of a revision had and used
)

// ServiceAccount is one row of the accounts of services in one bucket of time. Rows of both kinds add up to what a
// service did: those of requests have no use of devices, and those of replicas no requests, because replicas answer
// requests with different tokens at once.
type ServiceAccount struct {
	Start     time.Time `json:"start"` // of the bucket
	Kind      string    `json:"kind"`  // requests or replicas
	Service   string    `json:"service"`
	Owner     string    `json:"owner"`
	Revision  int       `json:"revision"`
	Token     string    `json:"token,omitempty"`     // its ID; empty: none was needed, or the row counts replicas
	TokenName string    `json:"tokenName,omitempty"` // also after it was revoked
	ServiceUse
}

// ServiceUse is what was asked of a service, and what its replicas had and used for that.
type ServiceUse struct {
	Requests
	ReplicaUse
}

// Requests are requests that have ended.
type Requests struct {
	RequestCounts
	RequestTimes
}

// RequestCounts counts requests, by how they ended, and what they moved. What was refused before a service was found,
// such as a request with a wrong token, is counted nowhere.
type RequestCounts struct {
	Answered   int64 `json:"answered"` // the whole answer of a replica, with a status below 500, was passed on
	Failed     int64 `json:"failed"`   // no replica answered in time, or one answered with a status from 500 on
	Cut        int64 `json:"cut"`      // the answer broke off after it had begun
	Left       int64 `json:"left"`     // the client closed its connection before the end
	Refused    int64 `json:"refused"`  // the router did not accept it, for example for its size
	Limited    int64 `json:"limited"`  // beyond a limit of the token, or too many waited
	Prompt     int64 `json:"promptTokens"`
	Completion int64 `json:"completionTokens"`
	BytesIn    int64 `json:"bytesIn"`  // of the bodies of requests
	BytesOut   int64 `json:"bytesOut"` // of the bodies of answers
}

// RequestTimes are how long requests took.
type RequestTimes struct {
	FirstWord Latency `json:"firstWord"` // of streams: from the arrival to the first byte of the answer
	Whole     Latency `json:"whole"`     // of answered requests: from the arrival to the end
}

// ReplicaUse is what replicas had and used of CPUs and devices.
type ReplicaUse struct {
	CPUMs      int64 `json:"cpuMs"`      // busy CPU time
	AllocCPUMs int64 `json:"allocCpuMs"` // time × CPUs granted
	DeviceUse
}

// Total is the number of requests.
func (c RequestCounts) Total() int64 {
	return c.Answered + c.Failed + c.Cut + c.Left + c.Refused + c.Limited
}

// Add adds other requests.
func (r *Requests) Add(d Requests) {
	r.Answered += d.Answered
	r.Failed += d.Failed
	r.Cut += d.Cut
	r.Left += d.Left
	r.Refused += d.Refused
	r.Limited += d.Limited
	r.Prompt += d.Prompt
	r.Completion += d.Completion
	r.BytesIn += d.BytesIn
	r.BytesOut += d.BytesOut
	r.FirstWord.Merge(d.FirstWord)
	r.Whole.Merge(d.Whole)
}

// Add adds another use.
func (u *ServiceUse) Add(d ServiceUse) {
	u.Requests.Add(d.Requests)
	u.CPUMs += d.CPUMs
	u.AllocCPUMs += d.AllocCPUMs
	u.DeviceUse.Add(d.DeviceUse)
}

// WhPerThousandTokens is the energy of the replicas, of work and of being kept ready, for each thousand tokens that
// they generated, in watt hours. It is nil where no energy was measured or no token was generated.
func (u ServiceUse) WhPerThousandTokens() *float64 {
	energy := u.EnergyDynamic + u.EnergyIdle
	if energy <= 0 || u.Completion <= 0 {
		return nil
	}
	const perWh = gpu.MilliJoule(3_600_000)
	return new(float64(energy) / float64(perWh) / float64(u.Completion) * 1000)
}

// Latency is a distribution of times that can be added up.
type Latency struct {
	SumUs int64 `json:"sumUs"` // of all times, in microseconds
	// how many times were at most 1 ms, then at most 2^(1/4) times as long and so on; zeros at the end are left out
	Steps []int64 `json:"steps"`
}

const (
	// MostLatencySteps bounds the steps of a [Latency]. The last one has everything above 71 minutes.
	MostLatencySteps = 90
	stepsPerDouble   = 4
)

// Add adds one time.
func (l *Latency) Add(t time.Duration) {
	t = max(0, t)
	i := 0
	if t > time.Millisecond {
		i = int(math.Ceil(stepsPerDouble * math.Log2(float64(t)/float64(time.Millisecond))))
	}
	l.grow(min(i, MostLatencySteps-1) + 1)
	l.Steps[min(i, MostLatencySteps-1)]++
	l.SumUs += t.Microseconds()
}

// Merge adds all times of another distribution.
func (l *Latency) Merge(d Latency) {
	l.grow(len(d.Steps))
	for i, n := range d.Steps {
		l.Steps[i] += n
	}
	l.SumUs += d.SumUs
}

func (l *Latency) grow(n int) {
	if n > len(l.Steps) {
		l.Steps = append(l.Steps, make([]int64, n-len(l.Steps))...)
	}
}

// Clone returns a copy that shares nothing with l.
func (l Latency) Clone() Latency { return Latency{SumUs: l.SumUs, Steps: slices.Clone(l.Steps)} }

// Count is the number of times.
func (l Latency) Count() (n int64) {
	for _, in := range l.Steps {
		n += in
	}
	return n
}

// Percentile returns a time that a part of the times, such as 0.99, do not exceed, to a fifth of it; 0: there are none.
func (l Latency) Percentile(part float64) time.Duration {
	rank := int64(math.Ceil(part * float64(l.Count())))
	from, to := 0.0, float64(time.Millisecond)
	for i, n := range l.Steps {
		if n > 0 && rank <= n {
			return time.Duration(from + (to-from)*(float64(rank)-0.5)/float64(n))
		}
		rank -= n
		from, to = to, float64(time.Millisecond)*math.Pow(2, float64(i+1)/stepsPerDouble)
	}
	return 0
}
