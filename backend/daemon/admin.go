package daemon

import (
	"context"
	"net/http"
	"net/url"

	"slipway/backend/session"
)

// serveAdmin answers requests of admins of an agent that several people share.
func serveAdmin(mux *http.ServeMux, d session.Admin) {
	mux.HandleFunc("POST /audit", take(func(r *http.Request, asked session.AuditQuery) (any, error) {
		return d.Audit(r.Context(), asked)
	}))
	mux.HandleFunc("GET /limits", answer(func(r *http.Request) (any, error) { return d.Limits(r.Context()) }))
	mux.HandleFunc("PUT /limits/{owner}", take(func(r *http.Request, limit session.Allowance) (any, error) {
		return struct{}{}, d.SetLimit(r.Context(), r.PathValue("owner"), &limit)
	}))
	mux.HandleFunc("DELETE /limits/{owner}", obey(func(r *http.Request) error {
		return d.SetLimit(r.Context(), r.PathValue("owner"), nil)
	}))
	mux.HandleFunc("GET /devices", answer(func(r *http.Request) (any, error) { return d.PairedClients(r.Context()) }))
	mux.HandleFunc("DELETE /devices/{device}", obey(func(r *http.Request) error {
		return d.RevokeClient(r.Context(), r.PathValue("device"))
	}))
}

// servePairing answers requests about an agent's keys.
func servePairing(mux *http.ServeMux, d session.Pairing) {
	mux.HandleFunc("POST /pair", take(func(r *http.Request, request session.PairRequest) (any, error) {
		return d.PairCode(r.Context(), request)
	}))
	mux.HandleFunc("POST /rotate", answer(func(r *http.Request) (any, error) { return d.RotateKey(r.Context()) }))
}

func (c *Client) Audit(ctx context.Context, asked session.AuditQuery) (entries []session.AuditEntry, err error) {
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

func (c *Client) PairedClients(ctx context.Context) (clients []session.PairedClient, err error) {
	return clients, c.call(ctx, http.MethodGet, "/devices", nil, &clients)
}

func (c *Client) RevokeClient(ctx context.Context, client string) error {
	return c.call(ctx, http.MethodDelete, "/devices/"+url.PathEscape(client), nil, nil)
}

func (c *Client) PairCode(ctx context.Context, request session.PairRequest) (code session.PairCode, err error) {
	return code, c.call(ctx, http.MethodPost, "/pair", request, &code)
}

func (c *Client) RotateKey(ctx context.Context) (rotated session.KeyRotation, err error) {
	return rotated, c.call(ctx, http.MethodPost, "/rotate", nil, &rotated)
}
