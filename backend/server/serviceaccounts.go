package server

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"slipway/backend/hub"
)

// serviceAccounts answers a query of a report about services.
func (s machineRoutes) serviceAccounts(r *http.Request) (query hub.ServiceQuery, report hub.ServiceReport, err error) {
	query = hub.ServiceQuery{By: hub.By(r.FormValue("by")), Service: r.FormValue("service"),
		Agent: r.FormValue("agent")}
	if query.AccountSpan, err = spanIn(r, s.clock.Now()); err != nil {
		return query, report, err
	}
	switch query.By {
	case hub.ByNothing, hub.ByService, hub.ByRevision, hub.ByToken, hub.ByOwner:
	default:
		return query, report, badQuery("by", fmt.Sprintf("%q is nothing to sum up by.", clip(string(query.By))),
			"Use service, revision, token or owner, or omit it.")
	}
	report, err = s.hub.ServiceAccounts(r.Context(), query)
	return query, report, err
}

var serviceColumns = []string{"start", "kind", "service", "agent", "owner", "revision", "token", "token_name",
	"requests", "answered", "failed", "cut", "client_left", "refused", "limited", "prompt_tokens", "completion_tokens",
	"bytes_in", "bytes_out", "first_word_p50_ms", "first_word_p99_ms", "whole_p50_ms", "whole_p99_ms", "cpu_hours",
	"alloc_cpu_hours", "alloc_gpu_hours", "busy_gpu_hours", "energy_dynamic_kwh", "energy_idle_kwh",
	"wh_per_1000_tokens"}

func (s machineRoutes) serviceAccountsCSV(w http.ResponseWriter, r *http.Request) error {
	query, report, err := s.serviceAccounts(r)
	if err == nil {
		writeCSV(w, "slipway-services-", query.AccountSpan, serviceColumns,
			each(report.Rows, func(u hub.ServiceUsage) []string { return serviceCells(u, query.Bucket) }))
	}
	return err
}

// serviceCells are the cells of a row. What is unknown is empty.
func serviceCells(u hub.ServiceUsage, bucket time.Duration) []string {
	whole := func(n int64) string { return strconv.FormatInt(n, 10) }
	unlessZero := func(n int64) string {
		if n == 0 {
			return ""
		}
		return whole(n)
	}
	perThousand := ""
	if u.WhPerThousandTokens != nil {
		perThousand = decimal(*u.WhPerThousandTokens)
	}
	return []string{startCell(u.Start, bucket), u.Kind, plainCell(u.Service), plainCell(u.Agent), plainCell(u.Owner),
		unlessZero(int64(u.Revision)), plainCell(u.Token), plainCell(u.TokenName), whole(u.Requests), whole(u.Answered),
		whole(u.Failed), whole(u.Cut), whole(u.Left), whole(u.Refused), whole(u.Limited), whole(u.Prompt),
		whole(u.Completion), whole(u.BytesIn), whole(u.BytesOut), unlessZero(u.FirstWord.P50),
		unlessZero(u.FirstWord.P99), unlessZero(u.Whole.P50), unlessZero(u.Whole.P99), hoursCell(u.CPUMs),
		hoursCell(u.AllocCPUMs), hoursCell(u.AllocGPUMs), hoursCell(u.BusyGPUMs),
		decimal(float64(u.EnergyDynamic) / perKWh), decimal(float64(u.EnergyIdle) / perKWh), perThousand}
}
