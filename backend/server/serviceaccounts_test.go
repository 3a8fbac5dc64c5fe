package server_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"slipway/backend/api"
	"slipway/backend/session"
)

// serviceAccounts are of two revisions and three tokens of a service, two of one name, and of one without replicas.
func serviceAccounts() []session.ServiceAccount {
	start := time.Date(2031, 5, 1, 0, 0, 0, 0, time.Local)
	asked := func(service, owner string, revision int, token, name string, requests int64) session.ServiceAccount {
		a := session.ServiceAccount{Start: start, Kind: session.AccountRequests, Service: service, Owner: owner,
			Revision: revision, Token: token, TokenName: name}
		a.Answered, a.Completion = requests, 1000*requests
		for range requests {
			a.FirstWord.Add(100 * time.Millisecond)
		}
		return a
	}
	replicas := func(revision int) session.ServiceAccount {
		a := session.ServiceAccount{Start: start, Kind: session.AccountReplicas, Service: "llama", Owner: "ada",
			Revision: revision}
		a.EnergyDynamic, a.EnergyIdle, a.AllocGPUMs = 3*3_600_000, 3_600_000, 3_600_000 // 4 Wh
		return a
	}
	return []session.ServiceAccount{
		asked("llama", "ada", 1, "t1", "=editor", 3), asked("llama", "ada", 2, "t2", "=editor", 2),
		asked("llama", "ada", 2, "t3", "", 2), asked("llama", "ada", 2, "", "", 1), replicas(1), replicas(2),
		asked("qwen", "bob", 1, "t9", "script", 1)}
}

func TestAccountsOfServicesAreSummedUp(t *testing.T) {
	w := start(t)
	w.agent.SetServiceAccounts(serviceAccounts()...)
	for query, want := range map[string][]string{
		"by=service": {"llama ada 0 /: 8 requests, 1.00 Wh", "qwen bob 0 /: 1 requests, -"},
		"by=revision": {"llama ada 2 /: 5 requests, 0.80 Wh", "llama ada 1 /: 3 requests, 1.33 Wh",
			"qwen bob 1 /: 1 requests, -"},
		"by=token": {"llama ada 0 /=editor: 5 requests, -", "llama ada 0 t3/: 2 requests, -",
			"llama ada 0 /: 1 requests, -", "qwen bob 0 /script: 1 requests, -"},
		"by=owner":              {" ada 0 /: 8 requests, 1.00 Wh", " bob 0 /: 1 requests, -"},
		"by=owner&service=qwen": {" bob 0 /: 1 requests, -"},
	} {
		var report api.ServiceReport
		status := w.call(t, "GET", "/api/v1/usage/services?from=2031-05-01&to=2031-05-02&"+query, "", &report)
		if status != 200 {
			t.Fatalf("%s: status %d", query, status)
		}
		var got []string
		for _, u := range report.Rows {
			energy := "-"
			if u.WhPerThousandTokens != nil {
				energy = fmt.Sprintf("%.2f Wh", *u.WhPerThousandTokens)
			}
			got = append(got, fmt.Sprintf("%s %s %d %s/%s: %d requests, %s", u.Service, u.Owner, u.Revision,
				u.Token, u.TokenName, u.Requests, energy))
			if u.FirstWord.P50 < 85 || u.FirstWord.P99 > 120 { // each was 100 ms
				t.Errorf("%s: %+v", query, u.FirstWord)
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s\ngot  %q\nwant %q", query, got, want)
		}
	}
	var all api.ServiceReport
	w.call(t, "GET", "/api/v1/usage/services", "", &all)
	if len(all.Rows) != 7 || all.Total.Requests != 9 || all.Total.EnergyDynamic != 6*3_600_000 {
		t.Errorf("in all %+v", all)
	}
	for field, query := range map[string]string{"by": "by=session", "from": "from=yesterday", "bucket": "bucket=week"} {
		var p session.Error
		if status := w.call(t, "GET", "/api/v1/usage/services?"+query, "", &p); status != 400 || len(p.Fields) != 1 ||
			p.Fields[0].Field != field {
			t.Errorf("%s: %d %+v", query, status, p)
		}
	}
	w.agent.SetDown(true)
	var p session.Error
	if status := w.call(t, "GET", "/api/v1/usage/services", "", &p); status != 503 || p.Hint == "" {
		t.Errorf("an agent that is not reached: %d %+v", status, p)
	}
}

func TestAccountsOfServicesAsTable(t *testing.T) {
	w := start(t)
	w.agent.SetServiceAccounts(serviceAccounts()...)
	response, text := do(t, http.DefaultClient,
		w.request(t, "GET", "/api/v1/usage/services.csv?from=2031-05-01&to=2031-05-02&by=token&bucket=day", ""))
	if !strings.Contains(response.Header.Get("Content-Disposition"), "slipway-services-2031-05-01-2031-05-02.csv") {
		t.Errorf("header %v", response.Header)
	}
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) != 5 {
		t.Fatalf("%v: %d rows in %s", err, len(rows), text)
	}
	first := map[string]string{}
	for i, name := range rows[0] {
		first[name] = rows[1][i]
	}
	for column, want := range map[string]string{"start": "2031-05-01", "service": "llama", "token_name": "'=editor",
		"revision": "", "requests": "5", "completion_tokens": "5000", "whole_p50_ms": "", "wh_per_1000_tokens": ""} {
		if first[column] != want {
			t.Errorf("%s is %q, want %q", column, first[column], want)
		}
	}
}
