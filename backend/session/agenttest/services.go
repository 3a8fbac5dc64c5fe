package agenttest

import (
	"context"
	"net"
	"net/http"
	"slices"
	"time"

	"slipway/backend/session"
)

// caseService deploys a service whose server is a shell's, uses it through the router, stops and removes it.
func caseService(s *suite) {
	name := "svc-" + suffix()
	req := session.DeployRequest{Name: name, ServiceWish: session.ServiceWish{Replicas: 1}, Spec: s.spec(session.Spec{
		Type: session.Inference, Access: session.Access{Serving: &session.Serving{Port: ServerPort,
			Command: []string{"sh", "-c", s.Server}, Health: session.Health{Path: "/"}}}})}
	bad := req
	bad.Name, bad.Replicas = "a", -1
	_, err := try(s, with(s.agent.DeployService, bad))
	if fields := session.AsError(err, session.CodeInvalid).Fields; len(fields) != 2 {
		s.Errorf("a bad one is refused with %+v", err)
	}
	deployed := must(s, with(s.agent.DeployService, req))
	// where the case fails before it removes it
	defer func() { _ = s.void(func(ctx context.Context) error { return s.agent.RemoveService(ctx, name) }) }()
	if deployed.Name != name || deployed.Revision != 1 || len(deployed.Revisions) != 1 || deployed.Owner == "" {
		s.Errorf("it is deployed as %+v", deployed)
	}
	if again := must(s, with(s.agent.DeployService, req)); again.Revision != 1 {
		s.Errorf("the same request gives revision %d", again.Revision)
	}
	ready := s.awaitService(name, session.ServiceReady)
	if len(ready.Live) != 1 || ready.Live[0].State != session.ReplicaHealthy {
		s.Fatalf("it is ready with %+v", ready.Live)
	}
	if at := ready.Addresses; len(at) == 0 || at[0].From != session.FromMachine || at[0].URL == "" {
		s.Errorf("clients reach it at %+v", at)
	}
	replica := must(s, with(s.agent.Get, ready.Live[0].Session))
	if replica.Spec.Type != session.Inference || replica.Spec.Serving.Service != name {
		s.Errorf("its replica is %+v", replica.Spec)
	}
	_, err = try(s, with(s.agent.Launch, session.LaunchRequest{Spec: req.Spec}))
	if session.CodeOf(err) != session.CodeInvalid {
		s.Errorf("a replica is launched without its service: %v", err)
	}

	token := must(s, func(ctx context.Context) (session.NewToken, error) {
		return s.agent.AddServiceToken(ctx, name, session.TokenRequest{Name: "test"})
	})
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return s.agent.DialService(ctx)
	}}
	defer transport.CloseIdleConnections()
	for text, want := range map[string]int{token.Text: http.StatusOK, "": http.StatusUnauthorized,
		"sk-wrong": http.StatusUnauthorized} {
		if got := s.ask(transport, "/services/"+name+"/", text); got != want {
			s.Errorf("with the token %q it answers %d, want %d", text, got, want)
		}
	}
	s.do(func(ctx context.Context) error { return s.agent.RevokeServiceToken(ctx, name, token.ID) })
	if got := s.ask(transport, "/services/"+name+"/", token.Text); got != http.StatusUnauthorized {
		s.Errorf("a revoked token is answered with %d", got)
	}

	s.changeRules(name)
	none := 0
	must(s, func(ctx context.Context) (session.Service, error) {
		return s.agent.ChangeService(ctx, name, session.ServiceChange{Replicas: &none})
	})
	s.awaitService(name, session.ServiceStopped)
	s.do(func(ctx context.Context) error { return s.agent.RemoveService(ctx, name) })
	for s.ctx.Err() == nil && s.service(name) != nil {
		s.pause()
	}
	_, err = try(s, func(ctx context.Context) (session.Service, error) {
		return s.agent.ChangeService(ctx, name, session.ServiceChange{Replicas: &none})
	})
	if session.CodeOf(err) != session.CodeServiceNotFound {
		s.Errorf("a removed one is changed: %v", err)
	}
	s.checkAccounts(name, deployed.Owner, token.ServiceToken)
}

// checkAccounts checks what is kept of a service that was removed, to which one request was sent with a token that was
// revoked. A request that was refused for its token is nobody's.
func (s *suite) checkAccounts(name, owner string, token session.ServiceToken) {
	span := session.AccountSpan{From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour)}
	var requests, cpu int64
	for _, row := range must(s, with(s.agent.ServiceAccounts, span)) {
		switch {
		case row.Service != name:
			continue
		case row.Owner != owner || row.Revision != 1:
			s.Errorf("an account is %+v", row)
		case row.Kind == session.AccountReplicas:
			cpu += row.AllocCPUMs
		case row.Token != token.ID || row.TokenName != token.Name:
			s.Errorf("requests with another token: %+v", row)
		}
		requests += row.Answered
	}
	if requests < 1 || requests > 1 && !s.Mortal || cpu <= 0 {
		s.Errorf("%d requests and %d ms of CPUs are counted", requests, cpu)
	}
}

// changeRules gives a service a rule, which has a value soon and leaves its replica alone, and takes it away again.
func (s *suite) changeRules(name string) {
	change := func(what session.ServiceChange) session.Service {
		return must(s, func(ctx context.Context) (session.Service, error) {
			return s.agent.ChangeService(ctx, name, what)
		})
	}
	limit := 5.0
	rules := []session.ScalingRule{{Source: session.FromRouter, Metric: session.MetricOutstanding, ScaleUp: &limit}}
	may := true
	if got := change(session.ServiceChange{Rules: &rules, MaySleep: &may}); len(got.Rules) != 1 || !got.MaySleep {
		s.Errorf("with a rule it is %+v", got)
	}
	for {
		got := s.service(name)
		if got != nil && len(got.Scaling.Rules) == 1 && got.Scaling.Rules[0].Value != nil {
			if got.Scaling.Rules[0].Does != session.RuleWithin || got.Scaling.Target != 1 || len(got.Live) != 1 {
				s.Errorf("the rule does %+v with %+v", got.Scaling, got.Live)
			}
			break
		}
		if s.ctx.Err() != nil {
			s.Fatalf("the rule has no value: %+v", got)
		}
		s.pause()
	}
	rules[0].Metric = "load"
	_, err := try(s, func(ctx context.Context) (session.Service, error) {
		return s.agent.ChangeService(ctx, name, session.ServiceChange{Rules: &rules})
	})
	if fields := session.AsError(err, session.CodeInvalid).Fields; len(fields) != 1 {
		s.Errorf("an unknown metric is refused with %+v", err)
	}
	if got := change(session.ServiceChange{Rules: &[]session.ScalingRule{}}); len(got.Rules) != 0 || !got.MaySleep {
		s.Errorf("without a rule it is %+v", got)
	}
}

// service returns a service; nil if there is none.
func (s *suite) service(name string) *session.Service {
	list := must(s, s.agent.ListServices)
	if i := slices.IndexFunc(list, func(one session.Service) bool { return one.Name == name }); i >= 0 {
		return &list[i]
	}
	return nil
}

func (s *suite) awaitService(name string, state session.ServiceState) session.Service {
	var last *session.Service
	for s.ctx.Err() == nil {
		if last = s.service(name); last != nil && last.State == state {
			return *last
		}
		s.pause()
	}
	s.Fatalf("%s is not %s: %+v", name, state, last)
	return session.Service{}
}

// ask sends a request with a token, again while the way is lost, and returns the status.
func (s *suite) ask(transport *http.Transport, path, token string) int {
	for s.ctx.Err() == nil {
		req, err := http.NewRequestWithContext(s.ctx, http.MethodGet, "http://localhost"+path, nil)
		if err != nil {
			s.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := transport.RoundTrip(req)
		if err == nil {
			_ = answer.Body.Close()
			return answer.StatusCode
		}
		if !s.Mortal {
			s.Errorf("%s: %v", path, err)
			return -1
		}
		s.pause()
	}
	return -1
}
