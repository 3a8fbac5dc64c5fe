package server_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"slipway/backend/session"
	"slipway/backend/updates"
)

func TestUpdatesAreAskedForOnlyWhenTheyAreWanted(t *testing.T) {
	w := start(t)
	var asked atomic.Int32
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, `{"version":"1.3.0","date":"2026-11-27","notes":"- Flight."}`) // the client may leave
	}))
	defer host.Close()
	offer := func(method string) (o updates.Offer) {
		t.Helper()
		if status := w.call(t, method, "/api/v1/updates", "", &o); status != 200 || len(o.Advice) != 1 {
			t.Fatalf("%s: %d %+v", method, status, o)
		}
		return o
	}
	if o := offer("POST"); o.Newer != nil || o.Problem == nil || o.Problem.Code != session.CodeSettingsInvalid {
		t.Errorf("without an address: %+v", o)
	}
	w.releases.Store(host.URL + "/latest.json")
	if o := offer("GET"); o.Newer != nil || o.Asked != nil || asked.Load() != 0 {
		t.Errorf("before it was asked %d times: %+v", asked.Load(), o)
	}
	if o := offer("POST"); o.Newer == nil || o.Newer.Version != "1.3.0" || o.Problem != nil {
		t.Errorf("asked: %+v", o)
	}
	if o := offer("GET"); o.Newer == nil || o.Newer.Notes != "- Flight." || asked.Load() != 1 {
		t.Errorf("after it was asked %d times: %+v", asked.Load(), o)
	}
	host.Close()
	if o := offer("POST"); o.Newer == nil || o.Problem == nil {
		t.Errorf("when it does not answer: %+v", o)
	}
}
