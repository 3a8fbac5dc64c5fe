//go:build linux && !race

package cli

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"slipway/backend/api"
	"slipway/backend/engine"
	"slipway/backend/hub"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

// overSocket speaks HTTP to a daemon at unix:///path.
func overSocket(host string) *http.Client {
	path := strings.TrimPrefix(host, "unix://")
	return &http.Client{Timeout: patience,
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}}}
}

// examine looks at what a death has left: the books as they are on the disk,
// and what runs whatever they say.
func (m *mortals) examine() {
	t := m.t
	t.Helper()
	books, err := store.Open(store.Config{Path: m.home.Join("agent.db")})
	if err != nil {
		t.Errorf("after death %d: %v", m.deaths, err)
		return
	}
	defer books.Close()
	wrong, err := books.Check()
	if err != nil || len(wrong) > 0 {
		t.Errorf("after death %d the books are wrong: %q, %v", m.deaths, wrong, err)
	}
	live, _, err := books.Live()
	if err != nil {
		t.Error(err)
	}
	grants := map[string][]gpu.Grant{}
	for _, s := range live {
		if s.Status.HoldsResources() && len(s.Grants.GPUs) > 0 {
			grants[string(s.ID)] = s.Grants.GPUs
		}
	}
	ledger := gpu.Restore([]gpu.Device{{UUID: madeUpDevice, Vendor: gpu.NVIDIA, Model: "Test",
		Memory: gpu.Bytes(80 * gibibyte)}}, gpu.Config{}, grants)
	if wrong := ledger.Check(); len(wrong) > 0 {
		t.Errorf("after death %d the ledger is wrong: %v", m.deaths, wrong)
	}
	var state gpu.State
	if _, err := books.Account("gpu/state", &state); err != nil {
		t.Error(err)
	}
	accounts := gpu.NewAccounts(state)
	if faults := accounts.Check(); len(faults) > 0 {
		t.Errorf("after death %d the accounts do not balance: %v", m.deaths, faults)
	}
	for _, d := range accounts.Devices() {
		if counted := int64(d.Counted.EnergyDyn + d.Counted.EnergyIdle); counted > m.room.used() {
			t.Errorf("after death %d %d mJ are counted, and %d were used", m.deaths, counted, m.room.used())
		}
	}
	m.disjoint(books.Instance())
}

// disjoint checks that no CPU and no part of the device is in the hands of two
// containers that run.
func (m *mortals) disjoint(instance string) {
	t := m.t
	t.Helper()
	filters, _ := json.Marshal(map[string][]string{"label": {engine.LabelInstance + "=" + instance},
		"status": {"running"}})
	answer, err := m.docker.Get("http://docker/containers/json?filters=" + url.QueryEscape(string(filters)))
	if err != nil {
		t.Error(err)
		return
	}
	defer answer.Body.Close()
	var containers []struct {
		Names  []string
		Labels map[string]string
	}
	if err := json.NewDecoder(answer.Body).Decode(&containers); err != nil {
		t.Error(err)
	}
	cpus, share, sessions := map[int]string{}, gpu.Share(0), map[string]string{}
	for _, c := range containers {
		name := strings.Join(c.Names, " ")
		var held session.Grants
		if err := json.Unmarshal([]byte(c.Labels[engine.LabelGrants]), &held); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, cpu := range held.CPUs {
			if other, taken := cpus[cpu]; taken {
				t.Errorf("after death %d CPU %d is used by %s and %s", m.deaths, cpu, other, name)
			}
			cpus[cpu] = name
		}
		for _, g := range held.GPUs {
			if share += g.Share; share > gpu.WholeDevice {
				t.Errorf("after death %d %s of the device is in use, by %s too", m.deaths, share, name)
			}
		}
		if other, doubled := sessions[c.Labels[engine.LabelSession]]; doubled {
			t.Errorf("after death %d one session runs as %s and %s", m.deaths, other, name)
		}
		sessions[c.Labels[engine.LabelSession]] = name
	}
}

// settle lets the program live, ends everything, and compares the accounts
// with what really happened.
func (m *mortals) settle() {
	t := m.t
	m.rise()
	var live []api.Session
	eventually(t, "everything runs or waits", func() (bool, any) {
		err := m.call(http.MethodGet, "/api/v1/sessions?state=live", nil, &live)
		m.room.employ(live)
		return err == nil && !slices.ContainsFunc(live, func(s api.Session) bool {
			return s.Status != session.Running &&
				s.Status != "PENDING"
		}), live
	})
	for _, s := range live {
		if err := m.call(http.MethodPost, "/api/v1/sessions/"+string(s.ID)+"/terminate",
			api.TerminateRequest{Forced: true},
			nil); err != nil {
			t.Error(err)
		}
	}
	eventually(t, "everything has ended", func() (bool, any) {
		err := m.call(http.MethodGet, "/api/v1/sessions?state=live", nil, &live)
		return err == nil && len(live) == 0, live
	})
	m.room.stop()
	m.nothingIsLost()
	m.energyIsWhole()
	m.useIsCountedOnce()
	m.must("shutdown")
	m.examine()
}

// nothingIsLost checks that every launch that was answered is there, once, and
// so is every end.
func (m *mortals) nothingIsLost() {
	t := m.t
	var all []api.Session
	if err := m.call(http.MethodGet, "/api/v1/sessions", nil, &all); err != nil {
		t.Fatal(err)
	}
	byKey := map[string]string{}
	for _, s := range all {
		if other, doubled := byKey[s.Spec.Label]; doubled {
			t.Errorf("%s is there as %s and %s", s.Spec.Label, other, s.ID)
		}
		byKey[s.Spec.Label] = string(s.ID)
		if s.Status == "ERROR" {
			t.Errorf("%s has failed: %s, %+v", s.Spec.Label, s.Reason, s.Error)
		}
	}
	for key, id := range m.wishes {
		if byKey[key] != id {
			t.Errorf("%s was accepted as %s and is %q", key, id, byKey[key])
		}
	}
}

// energyIsWhole checks that everything that the device used was counted, and
// counted once.
func (m *mortals) energyIsWhole() {
	eventually(m.t, "the energy of all deaths is in the books", func() (bool, any) {
		var report api.UsageReport
		if err := m.call(http.MethodGet, "/api/v1/usage?by=device", nil, &report); err != nil {
			return false, err
		}
		counted := int64(0)
		for _, row := range report.Rows {
			counted += int64(row.EnergyDynamic + row.EnergyIdle)
		}
		if used := m.room.used(); counted > used {
			m.t.Fatalf("%d mJ are counted, and %d were used", counted, used)
		}
		return counted == m.room.used(), []int64{counted, m.room.used()}
	})
}

// useIsCountedOnce checks the time of every session: what it was promised to the
// millisecond, and what it used but for 10 s that each death may cost.
func (m *mortals) useIsCountedOnce() {
	t := m.t
	var all []api.Session
	var report api.UsageReport
	for path, into := range map[string]any{"/api/v1/sessions": &all, "/api/v1/usage?by=session": &report} {
		if err := m.call(http.MethodGet, path, nil, into); err != nil {
			t.Fatal(err)
		}
	}
	rows := map[string]hub.Account{}
	for _, row := range report.Rows {
		rows[string(row.Session)] = row
	}
	const rounding = 20 // milliseconds, of two clocks
	var ran, lost int64
	for _, s := range all {
		if s.StartedAt == nil || s.TerminatedAt == nil {
			continue
		}
		row, share := rows[string(s.ID)], int64(0)
		for _, g := range s.Grants.GPUs {
			share += int64(g.Share)
		}
		held := s.TerminatedAt.Sub(*s.StartedAt).Milliseconds()
		if off := row.AllocGPUMs - held*share/1000; off < -rounding || off > rounding {
			t.Errorf("%s held %d thousandths for %d ms, and %d are counted", s.Spec.Label, share, held, row.AllocGPUMs)
		}
		if off := row.AllocCPUMs - held; off < -rounding || off > rounding {
			t.Errorf("%s held a CPU for %d ms, and %d are counted", s.Spec.Label, held, row.AllocCPUMs)
		}
		known := row.CoveredMs + row.EstimatedMs + row.GapMs
		if off := known - held; off < -rounding || off > rounding {
			t.Errorf("of %d ms of %s %d are told of: %+v", held, s.Spec.Label, known, row)
		}
		// Its process works from before the session is RUNNING, but not before it was scheduled.
		most := s.TerminatedAt.Sub(*s.ScheduledAt).Milliseconds()*roomBusy/100 + rounding
		if row.BusyGPUMs > most {
			t.Errorf("%s is counted as busy for %d ms, and it was for at most %d", s.Spec.Label, row.BusyGPUMs, most)
		}
		ran, lost = ran+held, lost+row.GapMs
		if string(s.ID) == m.keel {
			m.keelIsMeasured(row, held)
		}
	}
	t.Logf("deaths: %d under %d sessions that ran for %.1f s: no session lost or doubled, all of %.1f kJ booked to "+
		"the millijoule, %.2f s of utilisation missed",
		m.deaths, len(all), float64(ran)/1000, float64(m.room.used())/1e6, float64(lost)/1000)
}

// keelIsMeasured checks the use of the session that outlived every death, and
// that worked on the device from beginning to end.
func (m *mortals) keelIsMeasured(row hub.Account, held int64) {
	if row.GapMs > int64(m.deaths)*10_000 {
		m.t.Errorf("%d deaths cost %d ms of utilisation", m.deaths, row.GapMs)
	}
	// Milliseconds until it was seen and since it was seen last; and the device
	// moves on by its own clock, which lags on a machine with other work.
	const ends, lag = 4000, 80
	if least := (held - row.GapMs - ends) * roomBusy / 100 * lag / 100; row.BusyGPUMs < least {
		m.t.Errorf("of %d ms of work %d are counted, with %d told as missed", held*roomBusy/100, row.BusyGPUMs,
			row.GapMs)
	}
}

// tell says how things stand and what the control plane said last.
func (p *installed) tell() {
	p.t.Helper()
	p.t.Logf("sessions: %s", p.do("ps", "-a", "-o", "json").stdout)
	log, err := os.ReadFile(p.home.LogFile())
	p.t.Logf("the control plane's log (%v) ends so:\n%s", err, log[max(0, len(log)-16<<10):])
}
