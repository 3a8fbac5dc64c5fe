package hub

import (
	"cmp"
	"context"
	"slices"
	"time"

	"slipway/backend/session"
)

// Groupings of the accounts of services. [ByOwner] is one, too; [ByNothing] keeps requests and replicas apart.
const (
	ByService  By = "service"
	ByRevision By = "revision"
	// ByToken has one row for all tokens of a name, because a token that is renewed gets another ID. It has no use of
	// replicas, which answer requests with different tokens at once.
	ByToken By = "token"
)

// ServiceUsage is what was asked of a service in one bucket of time, and what its replicas had and used for that. A
// field that rows were added up over is empty.
type ServiceUsage struct {
	ServiceKey
	Requests int64 `json:"requests"` // however they ended
	session.RequestCounts
	FirstWord Percentiles `json:"firstWord"` // of streams: until the first byte of the answer
	Whole     Percentiles `json:"whole"`     // of answered requests
	session.ReplicaUse
	// energy of the replicas, of work and of being kept ready, for each thousand tokens that they generated, in watt
	// hours; absent where no energy was measured, no token was generated, or rows are of tokens
	WhPerThousandTokens *float64 `json:"whPerThousandTokens,omitempty"`
}

// ServiceKey is what rows of the accounts of services are added up by.
type ServiceKey struct {
	Start     time.Time `json:"start"`
	Kind      string    `json:"kind,omitempty"` // requests or replicas; empty: both
	Agent     string    `json:"agent,omitempty"`
	Service   string    `json:"service,omitempty"`
	Owner     string    `json:"owner,omitempty"`
	Revision  int       `json:"revision,omitempty"`
	Token     string    `json:"token,omitempty"` // ID; empty where the name is enough, or none was needed
	TokenName string    `json:"tokenName,omitempty"`
}

// Percentiles are times in milliseconds that half of all, and 99 of 100, do not exceed, to a fifth; 0: there are none.
type Percentiles struct {
	P50 int64 `json:"p50Ms"`
	P99 int64 `json:"p99Ms"`
}

// ServiceReport is what was asked of services in a span of time.
type ServiceReport struct {
	From    time.Time      `json:"from"`
	To      time.Time      `json:"to"`
	By      By             `json:"by"`     // service, revision, token, owner, or empty: each one separately
	Bucket  string         `json:"bucket"` // hour or day, or empty: the whole span
	Rows    []ServiceUsage `json:"rows"`   // by time, most requests first
	Total   ServiceUsage   `json:"total"`
	Missing []string       `json:"missing"` // agents that were not reached, whose accounts are not included
}

// ServiceQuery selects accounts of services. An empty Service or Agent selects all.
type ServiceQuery struct {
	session.AccountSpan
	By      By
	Service string
	Agent   string
}

// ServiceAccounts asks every agent what was asked of its services. It fails only if none answers. An agent that is too
// old to have such accounts has none.
func (ms *machines) ServiceAccounts(ctx context.Context, query ServiceQuery) (ServiceReport, error) {
	members, err := ms.on(query.Agent)
	if err != nil {
		return ServiceReport{}, err
	}
	found, errs := askAll(ctx, members, func(ctx context.Context, m *member) ([]session.ServiceAccount, error) {
		rows, err := m.Agent.ServiceAccounts(ctx, query.AccountSpan)
		if session.CodeOf(err) == session.CodeAgentUnsupported {
			return nil, nil
		}
		return rows, err
	})
	report := ServiceReport{From: query.From, To: query.To, By: query.By, Bucket: bucketName(query.Bucket)}
	sums, total := map[ServiceKey]*session.ServiceUse{}, session.ServiceUse{}
	for i, m := range members {
		if errs[i] != nil {
			report.Missing = append(report.Missing, m.Name())
		}
		for _, row := range found[i] {
			if query.Service != "" && row.Service != query.Service {
				continue
			}
			total.Add(row.ServiceUse)
			key, counts := serviceKeyOf(m.Name(), row, query.By)
			if !counts {
				continue
			}
			if sums[key] == nil {
				sums[key] = &session.ServiceUse{}
			}
			sums[key].Add(row.ServiceUse)
		}
	}
	if len(members) > 0 && len(report.Missing) == len(members) {
		return ServiceReport{}, firstError(errs)
	}
	report.Rows, report.Total = serviceRows(sums), usageOf(ServiceKey{Start: query.From}, total)
	return report, nil
}

// serviceKeyOf returns what a row is added up by, and whether it counts in that grouping.
func serviceKeyOf(agent string, row session.ServiceAccount, by By) (key ServiceKey, counts bool) {
	key.Start = row.Start.Local()
	switch by {
	case ByOwner:
		key.Owner = row.Owner
		return key, true
	case ByNothing:
		return ServiceKey{key.Start, row.Kind, agent, row.Service, row.Owner, row.Revision, row.Token, row.TokenName},
			true
	}
	key.Agent, key.Service, key.Owner = agent, row.Service, row.Owner
	switch by {
	case ByRevision:
		key.Revision = row.Revision
	case ByToken:
		if key.TokenName = row.TokenName; key.TokenName == "" {
			key.Token = row.Token
		}
		return key, row.Kind == session.AccountRequests
	}
	return key, true
}

func serviceRows(sums map[ServiceKey]*session.ServiceUse) []ServiceUsage {
	rows := make([]ServiceUsage, 0, len(sums))
	for key, use := range sums {
		rows = append(rows, usageOf(key, *use))
	}
	slices.SortFunc(rows, func(a, b ServiceUsage) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Service, b.Service),
			cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Owner, b.Owner), cmp.Compare(b.Revision, a.Revision),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.TokenName, b.TokenName), cmp.Compare(a.Token, b.Token))
	})
	return rows
}

func usageOf(key ServiceKey, use session.ServiceUse) ServiceUsage {
	return ServiceUsage{ServiceKey: key, Requests: use.Total(), RequestCounts: use.RequestCounts,
		FirstWord: percentilesOf(use.FirstWord), Whole: percentilesOf(use.Whole), ReplicaUse: use.ReplicaUse,
		WhPerThousandTokens: use.WhPerThousandTokens()}
}

// percentilesOf rounds to whole milliseconds, and a time that was measured never to 0.
func percentilesOf(l session.Latency) Percentiles {
	if l.Count() == 0 {
		return Percentiles{}
	}
	ms := func(part float64) int64 { return max(1, l.Percentile(part).Round(time.Millisecond).Milliseconds()) }
	return Percentiles{P50: ms(0.5), P99: ms(0.99)}
}
