package server

import (
	"context"
	"net/http"
	"time"

	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/recipe"
	"slipway/backend/session"
)

func (s sessionRoutes) lastSuccess(r *http.Request) (api.SuccessComparison, error) {
	this, success, err := s.hub.LastSuccess(r.Context(), r.PathValue("id"))
	if err != nil {
		return api.SuccessComparison{}, err
	}
	comparison := api.SuccessComparison{This: s.run(r.Context(), this), Spec: []recipe.Field{}}
	if success != nil {
		comparison.Success = new(s.run(r.Context(), *success))
		comparison.Spec = recipe.Compare(this.Spec.Redacted(""), success.Spec.Redacted(""))
	}
	return comparison, nil
}

// run returns a session with what it used until its end. What its agent does not answer stays unknown.
func (s sessionRoutes) run(ctx context.Context, of session.Session) api.Run {
	run := api.Run{Session: s.hub.View(of)}
	if of.StartedAt == nil || of.TerminatedAt == nil {
		return run
	}
	if agent, id, err := s.hub.Find(ctx, string(of.ID)); err == nil {
		if samples, err := agent.Usage(ctx, id, time.Time{}); err == nil && len(samples) > 0 {
			run.MemoryPeak = samples[len(samples)-1].MemoryPeak
		}
	}
	span := session.AccountSpan{From: *of.StartedAt, To: *of.TerminatedAt}
	report, err := s.hub.Accounts(ctx, hub.AccountQuery{AccountSpan: span, Agent: of.Agent})
	if err != nil {
		return run
	}
	var busy int64
	for _, row := range report.Rows {
		if row.Session == of.ID {
			busy += row.CPUMs
			run.VRAMPeak = max(run.VRAMPeak, row.VRAMPeak)
		}
	}
	if length := span.To.Sub(span.From); length > 0 {
		run.BusyCPUs = float64(busy) / float64(length.Milliseconds())
	}
	return run
}
