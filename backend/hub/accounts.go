package hub

import (
	"cmp"
	"context"
	"slices"
	"time"

	"slipway/backend/session"
)

// By says what rows of accounts are grouped by.
type By string

// The groupings of accounts. Rows of different kinds or buckets of time are never added up.
const (
	ByNothing By = ""
	BySession By = "session"
	ByDay     By = "day"
	ByLabel   By = "label"
	ByOwner   By = "owner"
	ByDevice  By = "device"
)

// Account is what one owner used in one bucket of time. Its counters are independent: none is derived from another.
// Sessions, other processes, idle devices and unattributed use add up to what the devices counted. A field that rows
// were added up over is empty.
type Account struct {
	session.Account
	Agent      string `json:"agent,omitempty"`
	DeviceName string `json:"deviceName,omitempty"` // for example GPU 0 · H200
	// the part of busyGpuMs beyond what the session was allocated: a share limits memory, not time on a device
	AboveGPUMs int64 `json:"aboveGpuMs"`
}

// Report is what was used in a span of time.
type Report struct {
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	By      By        `json:"by"`     // session, day, label, owner, device, or empty: each one separately
	Bucket  string    `json:"bucket"` // hour or day, or empty: the whole span
	Rows    []Account `json:"rows"`
	Totals  []Account `json:"totals"`  // one for each kind
	Missing []string  `json:"missing"` // agents that were not reached, whose accounts are not included
}

// AccountQuery selects accounts. An empty Label or Agent selects all.
type AccountQuery struct {
	session.AccountSpan
	By    By
	Label string
	Agent string
}

// Accounts asks every agent what was used. It fails only if none answers.
func (ms *machines) Accounts(ctx context.Context, query AccountQuery) (Report, error) {
	members, err := ms.on(query.Agent)
	if err != nil {
		return Report{}, err
	}
	found, errs := askAll(ctx, members, func(ctx context.Context, m *member) ([]session.Account, error) {
		return m.Agent.Accounts(ctx, query.AccountSpan)
	})
	report := Report{From: query.From, To: query.To, By: query.By, Bucket: bucketName(query.Bucket)}
	var rows []Account
	for i, m := range members {
		if errs[i] != nil {
			report.Missing = append(report.Missing, m.Name())
		}
		for _, row := range found[i] {
			if query.Label != "" && row.Label != query.Label {
				continue
			}
			account := Account{Account: row, Agent: m.Name()}
			if row.Kind == kindSession {
				account.AboveGPUMs = max(0, row.BusyGPUMs-row.AllocGPUMs)
			}
			if row.Device != "" {
				account.DeviceName = ms.DeviceName(m.Name(), row.Device)
			}
			rows = append(rows, account)
		}
	}
	if len(report.Missing) == len(members) {
		return Report{}, firstError(errs)
	}
	report.Rows, report.Totals = sumUp(rows, query.By), totals(rows, query.From)
	return report, nil
}

func bucketName(bucket time.Duration) string {
	switch bucket {
	case time.Hour:
		return "hour"
	case 24 * time.Hour:
		return "day"
	}
	return ""
}

// sumUp merges rows of the same kind and bucket that have the same key. Fields in which they differ are empty. It sorts
// the rows by time, with sessions first and the largest first.
func sumUp(rows []Account, by By) []Account {
	at := map[Account]int{}
	merged := make([]Account, 0, len(rows))
	for _, row := range rows {
		key := keyOf(row, by)
		i, ok := at[key]
		if !ok {
			i = len(merged)
			at[key] = i
			merged = append(merged, key)
		}
		merged[i].Add(row.Account)
		merged[i].AboveGPUMs += row.AboveGPUMs
	}
	slices.SortStableFunc(merged, func(a, b Account) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(rank(a.Kind), rank(b.Kind)),
			cmp.Compare(b.AllocGPUMs, a.AllocGPUMs), cmp.Compare(b.AllocCPUMs, a.AllocCPUMs),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.Session, b.Session), cmp.Compare(a.Device, b.Device),
			cmp.Compare(a.Label, b.Label))
	})
	return merged
}

// keyOf returns row without its counters and without the fields that it is added up over.
func keyOf(row Account, by By) Account {
	key := Account{Account: session.Account{Start: row.Start.Local(), Kind: row.Kind}}
	switch by {
	case BySession:
		key.Session, key.Name, key.Owner, key.Label, key.Agent = row.Session, row.Name, row.Owner, row.Label, row.Agent
	case ByLabel:
		key.Label = row.Label
	case ByOwner:
		key.Owner = row.Owner
	case ByDevice:
		key.Agent, key.Device, key.DeviceName = row.Agent, row.Device, row.DeviceName
	case ByNothing:
		key = row
		key.Start = row.Start.Local()
		key.CPUMs, key.AllocCPUMs, key.AboveGPUMs, key.DeviceUse = 0, 0, 0, session.DeviceUse{}
	}
	return key
}

// totals adds up all rows of each kind, as if they were one bucket that begins at start.
func totals(rows []Account, start time.Time) []Account {
	timeless := slices.Clone(rows)
	for i := range timeless {
		timeless[i].Start = start
	}
	return sumUp(timeless, ByDay)
}

const kindSession = "session"

// kinds is the order in which rows of one bucket are shown.
var kinds = []string{kindSession, "other", "idle", "unattributed"}

func rank(kind string) int { return slices.Index(kinds, kind) }
