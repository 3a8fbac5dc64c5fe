package accounts

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

const kindSession = "session"

// kinds are the kinds of accounts that are not of a session, by the holder in the accounts of devices.
var kinds = map[string]string{gpu.Others: "other", gpu.Idle: "idle", gpu.Unattributed: "unattributed"}

// accountKey is what rows of accounts are summed by.
type accountKey struct {
	start   time.Time
	session session.ID
	device  gpu.UUID
	kind    string
}

// namedAccount is a row of accounts with what is kept of its session.
type namedAccount struct {
	session.Account
	name accountName
}

// Read sums the accounts of a span. Buckets of minutes are kept for a day, of hours for three months, of days for ever.
// A span that reaches further back is answered in whole buckets of the next length.
func (b *Books) Read(now gpu.Moment, span session.AccountSpan) ([]session.Account, error) {
	span, err := b.prepare(now, span)
	if err != nil {
		return nil, err
	}
	named, err := b.sumSessions(span, now.Wall)
	if err != nil {
		return nil, err
	}
	rows := make([]session.Account, 0, len(named))
	for _, row := range named {
		row.Name, row.Owner, row.Label = row.name.Name, row.name.Owner, row.name.Label
		rows = append(rows, row.Account)
	}
	slices.SortFunc(rows, func(x, y session.Account) int {
		return cmp.Or(x.Start.Compare(y.Start), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Session, y.Session),
			cmp.Compare(x.Device, y.Device))
	})
	return rows, nil
}

// prepare checks a span, and stores what happened since the last checkpoint, which belongs to the answer.
func (b *Books) prepare(now gpu.Moment, span session.AccountSpan) (session.AccountSpan, error) {
	if span.To.IsZero() {
		span.To = now.Wall
	}
	if !span.From.Before(span.To) || span.Bucket < 0 {
		return span, session.NewError(session.CodeAgentInvalid, "The span of time ends before it begins.",
			"Give a from that is before to.")
	}
	return span, b.Checkpoint(now, false)
}

// sumSessions sums what sessions, and what is no session, used of devices and CPUs.
func (b *Books) sumSessions(span session.AccountSpan, now time.Time) ([]namedAccount, error) {
	sums := map[accountKey]*session.Account{}
	if err := b.sumDevices(span, now, sums); err != nil {
		return nil, err
	}
	if err := b.sumCPUs(span, now, sums); err != nil {
		return nil, err
	}
	rows := make([]namedAccount, 0, len(sums))
	names := map[session.ID]accountName{}
	for _, row := range sums {
		name, known := names[row.Session]
		if !known && row.Session != "" {
			if _, err := b.store.Account(keyName+string(row.Session), &name); err != nil {
				return nil, err
			}
			names[row.Session] = name
		}
		rows = append(rows, namedAccount{*row, name})
	}
	return rows, nil
}

// bucketLength is the shortest span that fits into the requested buckets and is still stored for the start.
func bucketLength(span session.AccountSpan, now time.Time) gpu.Span {
	age := now.Sub(span.From)
	switch {
	case span.Bucket >= 24*time.Hour || age >= gpu.HoursKept:
		return gpu.SpanDay
	case span.Bucket >= time.Hour || age >= gpu.MinutesKept || span.To.Sub(span.From) > 6*time.Hour:
		return gpu.SpanHour
	}
	return gpu.SpanMinute
}

// eachBucket calls fn with every stored bucket of devices or CPUs in a span.
func eachBucket[T any](b *Books, prefix string, span session.AccountSpan, now time.Time, fn func(bucket T)) error {
	length := bucketLength(span, now)
	first, end := length.StartOf(span.From.In(now.Location())), span.To
	if !end.Before(now) {
		end = end.Add(time.Second) // what begins just now is part of it
	}
	return b.store.EachAccount(bucketFrom(prefix, length, first), bucketFrom(prefix, length, end.Add(time.Second-1)),
		func(_ string, data []byte) error {
			var bucket T
			err := json.Unmarshal(data, &bucket)
			if err == nil {
				fn(bucket)
			}
			return err
		})
}

func (b *Books) sumDevices(span session.AccountSpan, now time.Time, sums map[accountKey]*session.Account) error {
	return eachBucket(b, keyGPUBucket, span, now, func(bucket gpu.Bucket) {
		for _, row := range bucket.Rows {
			key := accountKey{start: spanStart(span, bucket.Start, now), device: row.Device, kind: kinds[row.Session]}
			if key.kind == "" {
				key.kind, key.session = kindSession, session.ID(row.Session)
			}
			sumAt(sums, key).DeviceUse.Add(useOf(row.Counters))
		}
	})
}

func (b *Books) sumCPUs(span session.AccountSpan, now time.Time, sums map[accountKey]*session.Account) error {
	nanos := map[accountKey]int64{}
	err := eachBucket(b, keyCPUBucket, span, now, func(bucket cpuBucket) {
		for id, use := range bucket.Use {
			key := accountKey{start: spanStart(span, bucket.Start, now), session: id, kind: kindSession}
			sumAt(sums, key).AllocCPUMs += use.AllocMs
			nanos[key] += use.UsedNs
		}
	})
	for key, ns := range nanos {
		sums[key].CPUMs = ns / int64(time.Millisecond)
	}
	return err
}

// spanStart is the start of the requested bucket that a stored bucket is in.
func spanStart(span session.AccountSpan, start, now time.Time) time.Time {
	switch {
	case span.Bucket == 0:
		return span.From.UTC()
	case span.Bucket >= 24*time.Hour:
		return gpu.SpanDay.StartOf(start.In(now.Location())).UTC()
	}
	return start.Truncate(span.Bucket).UTC()
}

func sumAt(sums map[accountKey]*session.Account, key accountKey) *session.Account {
	if sums[key] == nil {
		sums[key] = &session.Account{Start: key.start, Session: key.session, Device: key.device, Kind: key.kind}
	}
	return sums[key]
}

// useOf converts counters. Whole MiB × milliseconds fit in 64 bits.
func useOf(c gpu.Counters) session.DeviceUse {
	return session.DeviceUse{AllocGPUMs: c.AllocGPUMs, BusyGPUMs: c.BusyGPUMs, VRAMMiBMs: int64(c.VRAM.Per(gpu.MiB)),
		VRAMPeak: c.VRAMPeak, EnergyDynamic: c.EnergyDyn, EnergyIdle: c.EnergyIdle, CoveredMs: c.CoveredMs,
		EstimatedMs: c.EstimatedMs, GapMs: c.GapMs}
}
