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
	"slipway/gpu"
)

// accounts are of two sessions and what nobody used, on two days.
func accounts() []session.Account {
	day := func(n int) time.Time { return time.Date(2031, 5, n, 0, 0, 0, 0, time.Local) }
	use := func(hours int64) session.DeviceUse {
		ms := hours * 3_600_000
		return session.DeviceUse{AllocGPUMs: ms, BusyGPUMs: ms / 2, VRAMMiBMs: ms << 10,
			VRAMPeak:      gpu.Bytes(hours) << 30,
			EnergyDynamic: gpu.MilliJoule(ms * 100), EnergyIdle: gpu.MilliJoule(ms * 20), CoveredMs: ms}
	}
	return []session.Account{
		{Start: day(1), Kind: "session", Session: "aaaaaaaaaaaa", Name: "train-a", Owner: "ada", Label: "=vision",
			Device: "GPU-0", DeviceUse: use(2)},
		{Start: day(1), Kind: "session", Session: "aaaaaaaaaaaa", Name: "train-a", Owner: "ada", Label: "=vision",
			CPUMs: 3_600_000, AllocCPUMs: 7_200_000},
		{Start: day(2), Kind: "session", Session: "aaaaaaaaaaaa", Name: "train-a", Owner: "ada", Label: "=vision",
			Device: "GPU-1", DeviceUse: use(3)},
		{Start: day(2), Kind: "session", Session: "bbbbbbbbbbbb", Name: "train-b", Owner: "bob", Device: "GPU-0",
			DeviceUse: use(4)},
		{Start: day(2), Kind: "idle", Device: "GPU-0", DeviceUse: session.DeviceUse{EnergyIdle: 7}},
	}
}

func TestAccountsAreSummedUp(t *testing.T) {
	w := start(t)
	const hour = 3_600_000
	rows := accounts()
	rows[0].BusyGPUMs = 3 * hour // above its share, which the unused shares of others do not make up for
	w.agent.SetAccounts(rows...)
	// each row as label of the row: GPU hours, CPU hours, energy of work in kWh/100
	for by, want := range map[string][]string{
		"": {"session aaaaaaaaaaaa GPU-0: 2", "session aaaaaaaaaaaa : 0", "session bbbbbbbbbbbb GPU-0: 4",
			"session aaaaaaaaaaaa GPU-1: 3", "idle  GPU-0: 0"},
		"session": {"session aaaaaaaaaaaa : 2", "session bbbbbbbbbbbb : 4", "session aaaaaaaaaaaa : 3", "idle  : 0"},
		"day":     {"session  : 2", "session  : 7", "idle  : 0"},
		"label":   {"session  : 2", "session  : 4", "session  : 3", "idle  : 0"},
		"owner":   {"session  : 2", "session  : 4", "session  : 3", "idle  : 0"},
		"device":  {"session  GPU-0: 2", "session  : 0", "session  GPU-0: 4", "session  GPU-1: 3", "idle  GPU-0: 0"},
	} {
		var report api.UsageReport
		if status := w.call(t, "GET", "/api/v1/usage?from=2031-05-01&to=2031-05-02&by="+by, "",
			&report); status != 200 {
			t.Fatalf("by %q: status %d", by, status)
		}
		var got []string
		for _, row := range report.Rows {
			got = append(got, fmt.Sprintf("%s %s %s: %d", row.Kind, row.Session, row.Device, row.AllocGPUMs/hour))
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("by %q\ngot  %q\nwant %q", by, got, want)
		}
		if len(report.Totals) != 2 || report.Totals[0].AllocGPUMs != 9*hour || report.Totals[0].CPUMs != hour ||
			report.Totals[0].VRAMPeak != 4<<30 || report.Totals[0].AboveGPUMs != hour ||
			report.Totals[1].EnergyIdle != 7 {
			t.Errorf("by %q: totals %+v", by, report.Totals)
		}
		span := w.agent.Span()
		if wantFrom := time.Date(2031, 5, 1, 0, 0, 0, 0, time.Local); !span.From.Equal(wantFrom) ||
			!span.To.Equal(wantFrom.AddDate(0, 0, 2)) || (span.Bucket != 0) != (by == "day") {
			t.Errorf("by %q: span %+v", by, span)
		}
	}
	var report api.UsageReport
	w.call(t, "GET", "/api/v1/usage?label=%3Dvision&by=session&bucket=hour", "", &report)
	if len(report.Rows) != 2 || w.agent.Span().Bucket != time.Hour ||
		w.agent.Span().To.Sub(w.agent.Span().From) != 30*24*time.Hour {
		t.Errorf("rows %+v, span %+v", report.Rows, w.agent.Span())
	}
	w.agent.SetDown(true)
	var p session.Error
	if status := w.call(t, "GET", "/api/v1/usage", "", &p); status != 503 || p.Hint == "" {
		t.Errorf("an agent that is not reached: %d %+v", status, p)
	}
}

func TestBadQueriesOfAccounts(t *testing.T) {
	w := start(t)
	for field, query := range map[string]string{
		"from": "from=yesterday", "to": "to=2031-13-01", "bucket": "bucket=week", "by": "by=colour",
	} {
		for _, path := range []string{"/api/v1/usage?", "/api/v1/usage.csv?"} {
			var p session.Error
			if status := w.call(t, "GET", path+query, "", &p); status != 400 || len(p.Fields) != 1 ||
				p.Fields[0].Field != field || p.Hint == "" {
				t.Errorf("%s%s: %d %+v", path, query, status, p)
			}
		}
	}
	for field, query := range map[string]string{"from": "from=2031-05-03&to=2031-05-01",
		"bucket": "by=day&bucket=hour"} {
		var p session.Error
		if status := w.call(t, "GET", "/api/v1/usage?"+query, "", &p); status != 400 || p.Fields[0].Field != field {
			t.Errorf("%s: %d %+v", query, status, p)
		}
	}
	var p session.Error
	if status := w.call(t, "GET", "/api/v1/usage?bucket=hour&from=2020-01-01", "", &p); status != 400 ||
		p.Fields[0].Field != "bucket" {
		t.Errorf("years by the hour: %d %+v", status, p)
	}
}

func TestAccountsAsTable(t *testing.T) {
	w := start(t)
	conn := w.dial(t, "/api/v1/events")
	nextEvent(t, conn)
	w.agent.SetBoard(board())
	nextEvent(t, conn) // the board, which has the names of devices
	w.agent.SetAccounts(accounts()...)
	response, text := do(t, http.DefaultClient,
		w.request(t, "GET", "/api/v1/usage.csv?from=2031-05-01&to=2031-05-02&bucket=day", ""))
	if kind := response.Header.Get("Content-Type"); kind != "text/csv; charset=utf-8" ||
		!strings.Contains(response.Header.Get("Content-Disposition"), "slipway-usage-2031-05-01-2031-05-02.csv") {
		t.Errorf("header %v", response.Header)
	}
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) != 6 {
		t.Fatalf("%v: %d rows in %s", err, len(rows), text)
	}
	cell := func(row int, column string) string {
		for i, name := range rows[0] {
			if name == column {
				return rows[row][i]
			}
		}
		t.Fatalf("there is no column %s", column)
		return ""
	}
	for column, want := range map[string]string{"start": "2031-05-01", "kind": "session", "name": "train-a",
		"label": "'=vision", "device": "GPU-0", "device_name": "GPU 0",
		"alloc_gpu_hours": "2", "busy_gpu_hours": "1", "vram_gib_hours": "2", "energy_dynamic_kwh": "0.2",
		"energy_idle_kwh": "0.04", "covered_ms": "7200000"} {
		if got := cell(1, column); got != want {
			t.Errorf("%s is %q, want %q", column, got, want)
		}
	}
}
