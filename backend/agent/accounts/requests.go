package accounts

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// Asked is what requests are counted by.
type Asked struct {
	Service  string `json:"service"`
	Owner    string `json:"owner"`
	Revision int    `json:"revision"`
	Token    string `json:"token,omitempty"` // its ID; empty: none was needed
}

// requestState is everything that the accounts of requests must remember.
type requestState struct {
	Buckets []requestBucket `json:"buckets"` // the open ones
	Parts   int64           `json:"parts"`
}

// requestBucket is what was counted while the wall clock was in one span.
type requestBucket struct {
	Span  gpu.Span     `json:"span"`
	Start time.Time    `json:"start"`
	Part  int64        `json:"part"`
	Rows  []requestRow `json:"rows"`
}

type requestRow struct {
	Asked
	session.Requests
}

// requestBook keeps the accounts of requests to services. It has its own mutex, because the books stay locked while
// they are stored, and no answer waits for a disk. It is safe for concurrent use.
type requestBook struct {
	mu      sync.Mutex // guards everything below
	state   requestState
	closed  []requestBucket   // not stored yet
	names   map[string]string // of tokens, by their keys in the store
	fresh   map[string]string // of them, those that are not stored yet
	changes int               // so far
	stored  int               // of the changes
}

// newRequestBook continues the book from what is stored.
func newRequestBook(state requestState) *requestBook {
	return &requestBook{state: state, names: map[string]string{}, fresh: map[string]string{}}
}

// count is [Books.Count].
func (b *requestBook) count(wall time.Time, of Asked, token string, d session.Requests) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changes++
	if key := tokenKey(of); token != "" && b.names[key] != token {
		b.names[key], b.fresh[key] = token, token
	}
	b.turn(wall)
	for i := range b.state.Buckets {
		b.state.Buckets[i].add(of, d)
	}
}

func (c *requestBucket) add(of Asked, d session.Requests) {
	i := slices.IndexFunc(c.Rows, func(r requestRow) bool { return r.Asked == of })
	if i < 0 {
		i = len(c.Rows)
		c.Rows = append(c.Rows, requestRow{Asked: of})
	}
	c.Rows[i].Add(d)
}

// turn closes and opens buckets. After the clock was set back, two may have one start: readers add them up.
func (b *requestBook) turn(wall time.Time) {
	for _, span := range gpu.Spans {
		start := span.StartOf(wall)
		i := slices.IndexFunc(b.state.Buckets, func(c requestBucket) bool { return c.Span == span })
		if i >= 0 && b.state.Buckets[i].Start.Equal(start) && len(b.state.Buckets[i].Rows) < mostRequestRows {
			continue
		}
		if i >= 0 {
			b.closed = append(b.closed, b.state.Buckets[i])
			b.state.Buckets = slices.Delete(b.state.Buckets, i, i+1)
		}
		b.state.Parts++
		b.state.Buckets = append(b.state.Buckets, requestBucket{Span: span, Start: start, Part: b.state.Parts})
	}
}

// pending reports whether there is something to store.
func (b *requestBook) pending() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changes != b.stored
}

// put adds to rows, by key, what must be stored to continue the book after a crash. Storing it twice is harmless. The
// function that it returns is called once it is stored.
func (b *requestBook) put(rows map[string]any) (stored func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changes == b.stored {
		return func() {}
	}
	open := copied(b.state.Buckets)
	rows[keyRequestState] = requestState{Buckets: open, Parts: b.state.Parts}
	for _, bucket := range slices.Concat(b.closed, open) {
		rows[bucketKey(keyRequestBucket, bucket.Span, bucket.Start, bucket.Part)] = bucket
	}
	for key, name := range b.fresh {
		rows[key] = name
	}
	changes, closed, fresh := b.changes, len(b.closed), maps.Clone(b.fresh)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.stored, b.closed = changes, b.closed[closed:]
		maps.DeleteFunc(b.fresh, func(key, name string) bool { return fresh[key] == name })
	}
}

// copied returns copies of buckets that share nothing with them.
func copied(buckets []requestBucket) []requestBucket {
	copies := slices.Clone(buckets)
	for i := range copies {
		copies[i].Rows = slices.Clone(copies[i].Rows)
		for k := range copies[i].Rows {
			row := &copies[i].Rows[k]
			row.FirstWord, row.Whole = row.FirstWord.Clone(), row.Whole.Clone()
		}
	}
	return copies
}

// tokenKey is the key of the name of a token.
func tokenKey(of Asked) string {
	return keyToken + strings.Join([]string{of.Owner, of.Service, of.Token}, "/")
}

const (
	// mostTokensOf bounds what one request is counted with: a replica reports it, and sums must fit in 64 bits.
	mostTokensOf = 100_000_000
	// mostRequestRows bounds an open bucket, because it is written whole.
	mostRequestRows = 256
)

// Count counts requests to a service that have ended. token is the name of their token, which is kept as long as the
// accounts; empty: it was removed meanwhile, or there was none.
func (b *Books) Count(wall time.Time, of Asked, token string, d session.Requests) {
	d.Prompt = min(max(0, d.Prompt), mostTokensOf)
	d.Completion = min(max(0, d.Completion), mostTokensOf)
	b.requests.count(wall, of, token, d)
}

// serviceKey is what rows of the accounts of services are summed by.
type serviceKey struct {
	start time.Time
	kind  string
	Asked
}

// ReadServices sums the accounts of services in a span, in buckets as [Books.Read] does.
func (b *Books) ReadServices(now gpu.Moment, span session.AccountSpan) ([]session.ServiceAccount, error) {
	span, err := b.prepare(now, span)
	if err != nil {
		return nil, err
	}
	sums := map[serviceKey]*session.ServiceUse{}
	err = eachBucket(b, keyRequestBucket, span, now.Wall, func(bucket requestBucket) {
		start := spanStart(span, bucket.Start, now.Wall)
		for _, row := range bucket.Rows {
			useAt(sums, serviceKey{start, session.AccountRequests, row.Asked}).Requests.Add(row.Requests)
		}
	})
	if err != nil {
		return nil, err
	}
	used, err := b.sumSessions(span, now.Wall)
	if err != nil {
		return nil, err
	}
	for _, row := range used {
		if row.name.Service != "" {
			of := Asked{Service: row.name.Service, Owner: row.name.Owner, Revision: row.name.Revision}
			useAt(sums, serviceKey{row.Start, session.AccountReplicas, of}).Add(session.ServiceUse{
				ReplicaUse: session.ReplicaUse{CPUMs: row.CPUMs, AllocCPUMs: row.AllocCPUMs, DeviceUse: row.DeviceUse}})
		}
	}
	return b.serviceRows(sums)
}

func useAt(sums map[serviceKey]*session.ServiceUse, key serviceKey) *session.ServiceUse {
	if sums[key] == nil {
		sums[key] = &session.ServiceUse{}
	}
	return sums[key]
}

// serviceRows returns sums in the order of time, with the names of tokens.
func (b *Books) serviceRows(sums map[serviceKey]*session.ServiceUse) ([]session.ServiceAccount, error) {
	rows := make([]session.ServiceAccount, 0, len(sums))
	names := map[string]string{}
	for of, use := range sums {
		row := session.ServiceAccount{Start: of.start, Kind: of.kind, Service: of.Service, Owner: of.Owner,
			Revision: of.Revision, Token: of.Token, ServiceUse: *use}
		if of.Token != "" {
			key := tokenKey(of.Asked)
			if _, known := names[key]; !known {
				var name string
				if _, err := b.store.Account(key, &name); err != nil {
					return nil, err
				}
				names[key] = name
			}
			row.TokenName = names[key]
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(x, y session.ServiceAccount) int {
		return cmp.Or(x.Start.Compare(y.Start), cmp.Compare(x.Service, y.Service), cmp.Compare(x.Owner, y.Owner),
			cmp.Compare(x.Revision, y.Revision), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Token, y.Token))
	})
	return rows, nil
}
