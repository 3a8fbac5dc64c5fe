package daemon

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"

	"slipway/backend/access"
	"slipway/backend/session"
)

// serveShared answers what is asked of an agent that several people share.
func serveShared(mux *http.ServeMux, d Daemon) {
	mux.HandleFunc("POST /audit", answer(func(r *http.Request) (any, error) {
		var asked session.AuditQuery
		if err := json.NewDecoder(io.LimitReader(r.Body, answerMost)).Decode(&asked); err != nil {
			return nil, &session.Error{Code: "agent_audit_invalid", Message: "What is asked of the log cannot be read.",
				Hint: "Use the same version on both sides.", Err: err}
		}
		if err := asked.Check(); err != nil {
			return nil, err
		}
		return d.Audit(r.Context(), asked)
	}))
	mux.HandleFunc("GET /limits", answer(func(r *http.Request) (any, error) { return d.Limits(r.Context()) }))
	mux.HandleFunc("PUT /limits/{owner}", answer(func(r *http.Request) (any, error) {
		var limit session.Allowance
		decoder := json.NewDecoder(io.LimitReader(r.Body, answerMost))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&limit); err != nil {
			return nil, &session.Error{Code: "agent_limit_invalid", Message: "The limit cannot be read.",
				Hint: "Use the same version on both sides.", Err: err}
		}
		return struct{}{}, d.SetLimit(r.Context(), r.PathValue("owner"), &limit)
	}))
	mux.HandleFunc("DELETE /limits/{owner}", answer(func(r *http.Request) (any, error) {
		return struct{}{}, d.SetLimit(r.Context(), r.PathValue("owner"), nil)
	}))
}

func (c *Client) Audit(ctx context.Context, asked session.AuditQuery) (entries []access.Entry, err error) {
	return entries, c.call(ctx, http.MethodPost, "/audit", asked, &entries)
}

func (c *Client) Limits(ctx context.Context) (limits map[string]session.Allowance, err error) {
	return limits, c.call(ctx, http.MethodGet, "/limits", nil, &limits)
}

func (c *Client) SetLimit(ctx context.Context, owner string, limit *session.Allowance) error {
	if limit == nil {
		return c.call(ctx, http.MethodDelete, "/limits/"+url.PathEscape(owner), nil, nil)
	}
	return c.call(ctx, http.MethodPut, "/limits/"+url.PathEscape(owner), limit, nil)
}
