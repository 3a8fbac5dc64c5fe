package services

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/agent/accounts"
	"slipway/backend/agent/host"
	"slipway/backend/agent/records"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

// machine runs services in simulated time. Its sessions run at once and serve what handler does.
type machine struct {
	*testing.T
	*Services
	records *records.Records
	stop    func()
	client  *http.Client

	mu       sync.Mutex // guards the rest
	launched int
	handler  http.HandlerFunc
	samples  map[session.ID]session.Usage
	conns    []net.Conn
}

// simulate runs a test with a service that has rules. Its replicas answer GET /health.
func simulate(t *testing.T, test func(m *machine), rules ...session.ScalingRule) {
	synctest.Test(t, func(t *testing.T) {
		books, err := store.Open(store.Config{Path: filepath.Join(t.TempDir(), "agent.db")})
		if err != nil {
			t.Fatal(err)
		}
		m := &machine{T: t, samples: map[session.ID]session.Usage{}, records: records.New(records.Config{Store: books,
			Ended: func(session.ID) time.Time { return time.Now() },
			Peak:  func(session.ID) gpu.Bytes { return 0 },
			Tell:  func([]session.Session) {},
			Dress: func(s session.Session) session.Session { return s }})}
		m.start()
		_, err = m.DeployService(t.Context(), session.DeployRequest{Name: "chat", Owner: "ada",
			ServiceWish: session.ServiceWish{Replicas: 1, Public: true, Rules: rules},
			Spec: session.Spec{Image: "llama", Access: session.Access{Serving: &session.Serving{Port: 8000,
				Health: session.Health{Interval: seconds(1), InitialDelay: seconds(3600)}}}}})
		if err != nil {
			t.Fatal(err)
		}
		m.pass(3 * time.Second)
		m.expect(1)
		test(m)
		m.stop()
		if err := books.Close(); err != nil {
			t.Error(err)
		}
	})
}

// none counts nothing and listens nowhere.
type none struct{}

func (none) Count(time.Time, accounts.Asked, string, session.Requests) {}
func (none) Open()                                                     {}
func (none) Take() []net.Listener                                      { return nil }
func (none) Addresses() []session.ServiceAddress                       { return nil }
func (none) Named(string) bool                                         { return false }

// start starts the services as a new agent does. Connections of the last one are cut.
func (m *machine) start() {
	var err error
	m.Services, err = Open(Config{Host: host.Host{Agent: "lab", Owner: "ada", Records: m.records,
		Log: slog.New(slog.DiscardHandler)}, Sessions: m, Dial: m.dial,
		Accounts: none{}, Listeners: none{},
		DeviceMemory: func() gpu.Bytes { return 0 },
		LastLines:    func(context.Context, session.ID) []string { return nil },
		Sample: func(id session.ID) (session.Usage, bool) {
			m.mu.Lock()
			defer m.mu.Unlock()
			sample, known := m.samples[id]
			return sample, known
		}})
	if err != nil {
		m.Fatal(err)
	}
	ctx, cancel := context.WithCancel(m.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.Services.Run(ctx)
	}()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return m.DialService(ctx)
	}}
	m.client = &http.Client{Transport: transport}
	m.stop = func() {
		cancel()
		transport.CloseIdleConnections()
		m.mu.Lock()
		for _, conn := range m.conns {
			_ = conn.Close()
		}
		m.conns = nil
		m.mu.Unlock()
		<-ended
	}
}

func (m *machine) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (m *machine) dial(_ context.Context, _ session.ID, _ int) (net.Conn, error) {
	ours, theirs := net.Pipe()
	m.mu.Lock()
	m.conns = append(m.conns, ours, theirs)
	m.mu.Unlock()
	connected := newPipe()
	go func() {
		_ = http.Serve(connected, http.HandlerFunc(m.serve)) //nolint:gosec // a test
	}()
	connected.accepted <- theirs
	_ = connected.Close()
	return ours, nil
}

func (m *machine) serve(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	handler := m.handler
	m.mu.Unlock()
	switch {
	case r.URL.Path == "/health":
	case handler != nil:
		handler(w, r)
	default:
		http.NotFound(w, r)
	}
}

// answers sets what replicas answer.
func (m *machine) answers(handler http.HandlerFunc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.handler = handler
}

// has sets what replicas answer to GET /metrics, or if empty that they have none.
func (m *machine) has(metrics string) {
	m.answers(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" || metrics == "" {
			http.NotFound(w, r)
			return
		}
		_, _ = fmt.Fprint(w, metrics)
	})
}

func (m *machine) LaunchReplica(_ context.Context, req session.LaunchRequest) (session.Session, error) {
	m.mu.Lock()
	m.launched++
	id := session.ID(fmt.Sprintf("replica%03d", m.launched))
	m.mu.Unlock()
	s := records.NewSession(req, id, "lab", time.Now())
	err := m.records.Update(func(tx *store.Tx) error {
		if err := records.Create(tx, &s, req.Key); err != nil {
			return err
		}
		s.StartedAt = new(time.Now())
		s.Grants = session.Grants{CPUs: []int{0, 1}, GPUs: []gpu.Grant{{Device: "GPU-1", Share: gpu.WholeDevice / 2,
			Memory: 8 * gpu.GiB}}}
		return becomes(tx, &s, session.Scheduled, session.Preparing, session.Prepared, session.Creating,
			session.Running)
	})
	return s, err
}

func becomes(tx *store.Tx, s *session.Session, statuses ...session.Status) error {
	for _, status := range statuses {
		s.Status = status
		if err := tx.Put(s); err != nil {
			return err
		}
	}
	return nil
}

func (m *machine) CheckReplica(context.Context, string, session.Spec) ([]session.FieldError, error) {
	return nil, nil
}

func (m *machine) Get(_ context.Context, id session.ID) (session.Session, error) {
	return m.records.Get(id)
}

func (m *machine) Preview(context.Context, string, session.Spec, int) (session.Preview, error) {
	return session.Preview{}, nil
}

func (m *machine) Terminate(_ context.Context, id session.ID, _ bool) (s session.Session, err error) {
	err = m.records.Update(func(tx *store.Tx) error {
		if s, err = tx.Get(id); err != nil {
			return err
		}
		s.TerminatedAt = new(time.Now())
		return becomes(tx, &s, session.Terminating, session.Terminated)
	})
	return s, err
}

func (m *machine) chat() session.Service {
	m.Helper()
	list, err := m.ListServices(m.Context())
	if err != nil || len(list) != 1 {
		m.Fatalf("%+v, %v", list, err)
	}
	return list[0]
}

// expect fails unless the service has as many healthy replicas and no other.
func (m *machine) expect(replicas int) session.Service {
	m.Helper()
	got := m.chat()
	others := slices.ContainsFunc(got.Live, func(r session.Replica) bool { return r.State != session.ReplicaHealthy })
	if len(got.Live) != replicas || others || got.Scaling.Target != replicas {
		m.Fatalf("%d replicas are wanted, there are %+v: %s", got.Scaling.Target, got.Live, got.Why)
	}
	return got
}

// does fails unless the first rule has a value and does something. A value below 0 means none.
func (m *machine) does(value float64, does session.RuleDoes) {
	m.Helper()
	rules := m.chat().Scaling.Rules
	if len(rules) == 0 || rules[0].Does != does || (rules[0].Value != nil) != (value >= 0) ||
		rules[0].Value != nil && *rules[0].Value != value {
		m.Fatalf("the rules do %+v, want %v, %s", rules, value, does)
	}
}

func seconds(n int) session.Duration { return session.Duration(n) * session.Duration(time.Second) }

func TestOutstandingRequestsScale(t *testing.T) {
	rule := session.ScalingRule{Source: session.FromRouter, Metric: session.MetricOutstanding, ScaleUp: new(2.0),
		ScaleDown: new(1.0), Window: seconds(30), Cooldown: seconds(10)}
	simulate(t, func(m *machine) {
		m.answers(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		})
		ctx, cancel := context.WithCancel(m.Context())
		var asked sync.WaitGroup
		ask := func() {
			asked.Go(func() {
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/v1/completions",
					strings.NewReader(`{"model":"chat"}`))
				if err != nil {
					m.Error(err)
					return
				}
				if answer, err := m.client.Do(req); err == nil {
					_ = answer.Body.Close()
				}
			})
		}
		for range 3 {
			ask()
		}
		began := time.Now()
		for len(m.chat().Live) < 2 {
			if m.pass(time.Second / 10); time.Since(began) > 3*time.Second {
				m.Fatalf("nothing is launched: %+v", m.chat())
			}
		}
		m.pass(5 * time.Second)
		m.expect(2)
		m.does(1.5, session.RuleWithin)
		m.pass(5 * time.Minute) // less than the router waits
		m.expect(2)
		cancel()
		asked.Wait()
		m.pass(time.Second)
		m.does(0, session.RuleBelow)
		m.pass(37 * time.Second)
		m.expect(2)
		m.pass(5 * time.Second)
		m.expect(1)
		m.does(0, session.RuleFewest)
	}, rule)
}

func TestMetricsOfTheServerScale(t *testing.T) {
	const metric = "vllm:num_requests_waiting"
	rule := session.ScalingRule{Source: session.FromFramework, Metric: metric, ScaleUp: new(4.0),
		ScaleDown: new(1.0), Window: seconds(30), Cooldown: seconds(10), MaxReplicas: 2}
	simulate(t, func(m *machine) {
		m.does(-1, session.RuleMissing)
		m.has(metric + `{model="a"} 2` + "\n" + metric + `{model="b"} 3` + "\n")
		m.pass(10 * time.Second)
		m.expect(2)
		m.does(5, session.RuleMost)
		m.has("")
		m.pass(10 * time.Minute)
		m.expect(2)
		m.does(-1, session.RuleMissing)

		m.has(metric + " 0\n")
		m.pass(20 * time.Second)
		m.does(0, session.RuleBelow)
		m.stop() // the agent, in the middle of the window
		m.start()
		m.pass(20 * time.Second)
		m.expect(2)
		m.has("")
		m.pass(20 * time.Second) // the value is too old
		m.expect(2)
		m.has(metric + " 0\n")
		m.pass(39 * time.Second)
		m.expect(2)
		m.pass(11 * time.Second)
		m.expect(1)
		if m.launched != 2 {
			m.Errorf("%d were launched", m.launched)
		}
	}, rule)
}

func TestDeviceUseScales(t *testing.T) {
	rule := session.ScalingRule{Source: session.FromDevice, Metric: session.MetricGPUUtil, ScaleUp: new(80.0),
		ScaleDown: new(20.0), Window: seconds(30), Cooldown: seconds(60)}
	simulate(t, func(m *machine) {
		m.does(-1, session.RuleMissing)
		sample := func(ids ...session.ID) {
			m.mu.Lock()
			defer m.mu.Unlock()
			for _, id := range ids {
				m.samples[id] = session.Usage{Session: id, At: time.Now(),
					GPUs: []session.DeviceLoad{{Device: "GPU-1", Util: new(4500)}}} // 45 % of it, 90 % of its half
			}
		}
		sample("replica001")
		m.pass(3 * time.Second)
		m.expect(2)
		m.does(90, session.RuleAbove)
		m.pass(20 * time.Second) // the sample is too old
		m.expect(2)
		m.does(-1, session.RuleMissing)
		m.pass(60 * time.Second)
		sample("replica002")
		m.pass(3 * time.Second)
		m.expect(3)
		m.pass(10 * time.Minute)
		m.expect(3)
	}, rule)
}

func TestRulesChangeAlone(t *testing.T) {
	rule := session.ScalingRule{Source: session.FromRouter, Metric: session.MetricWaiting, ScaleUp: new(2.0)}
	simulate(t, func(m *machine) {
		before := m.expect(1)
		other := rule
		other.ScaleUp = new(9.0)
		change := func(what session.ServiceChange) session.Service {
			m.Helper()
			got, err := m.ChangeService(m.Context(), "chat", what)
			if err != nil {
				m.Fatal(err)
			}
			m.pass(time.Second)
			return got
		}
		rules := []session.ScalingRule{rule, other}
		got := change(session.ServiceChange{Rules: &rules, MaySleep: new(true)})
		if len(got.Rules) != 2 || !got.MaySleep || len(got.Scaling.Rules) != 0 {
			m.Errorf("it is %+v", got)
		}
		if got := change(session.ServiceChange{Retry: new(true)}); len(got.Rules) != 2 || len(got.Scaling.Rules) != 2 {
			m.Errorf("after another change it has %+v", got.Rules)
		}
		if got := change(session.ServiceChange{Rules: &[]session.ScalingRule{}}); len(got.Rules) != 0 || !got.MaySleep {
			m.Errorf("without rules it is %+v", got)
		}
		other.Metric = "load"
		_, err := m.ChangeService(m.Context(), "chat", session.ServiceChange{Rules: &[]session.ScalingRule{other}})
		if e := session.AsError(err, session.CodeServerFailed); len(e.Fields) != 1 ||
			e.Fields[0].Field != "rules[0].metricName" {
			m.Errorf("a wrong rule is refused with %+v", err)
		}
		if after := m.expect(1); after.Revision != before.Revision || after.Live[0].Session != before.Live[0].Session {
			m.Errorf("the replicas changed: %+v", after)
		}
	}, rule)
}
