package client

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestCall(t *testing.T) {
	type note struct{ Text string }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		switch {
		case err != nil || r.Header.Get("Authorization") != "Bearer secret":
			w.WriteHeader(http.StatusUnauthorized)
		case r.Method == http.MethodGet && len(body) == 0 && r.Header.Get("Content-Type") == "":
			_ = json.NewEncoder(w).Encode(note{"kept"})
		case r.Method == http.MethodPost && string(body) == `{"Text":"new"}` &&
			r.Header.Get("Content-Type") == "application/json":
			w.WriteHeader(http.StatusNoContent)
		default:
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, `{"code":"note_write_conflict","message":"It is taken."}`)
		}
	}))
	t.Cleanup(server.Close)
	c := New(server.URL, "secret")

	var read note
	if err := c.Call(t.Context(), http.MethodGet, "/notes", nil, &read); err != nil || read.Text != "kept" {
		t.Errorf("GET: %+v, %v", read, err)
	}
	if err := c.Call(t.Context(), http.MethodPost, "/notes", note{"new"}, nil); err != nil {
		t.Errorf("POST: %v", err)
	}
	err := c.Call(t.Context(), http.MethodPut, "/notes/1", note{"new"}, &read)
	var refused *Refused
	if !errors.As(err, &refused) || refused.Status != http.StatusConflict ||
		refused.Problem.Code != "note_write_conflict" {
		t.Errorf("PUT: %v", err)
	}
	c.Token = "other"
	if err := c.Call(t.Context(), http.MethodGet, "/notes", nil, nil); !errors.As(err, &refused) ||
		refused.Status != http.StatusUnauthorized ||
		refused.Problem.Message != "The control plane answered 401 Unauthorized." {
		t.Errorf("with another token: %v", err)
	}
}
