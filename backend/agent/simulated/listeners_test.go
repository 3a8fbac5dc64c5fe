package simulated_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"strings"
	"testing"

	"slipway/backend/agent"
	"slipway/backend/agent/simulated"
	"slipway/backend/session"
)

// freePort returns an address of loopback on which nothing listens.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// openTo opens a machine that lets other computers in at an address.
func openTo(t *testing.T, network session.NetworkListener) machine {
	t.Helper()
	m := machine{t, simulated.Open(t, func(c *agent.Config) { c.Host.Services = network }), nil}
	m.deploy("demo", session.ServiceWish{Replicas: 1}, 0)
	return m
}

// address is the one of a service from where a client is.
func address(t *testing.T, s session.Service, from session.AddressFrom) session.ServiceAddress {
	t.Helper()
	for _, one := range s.Addresses {
		if one.From == from {
			return one
		}
	}
	t.Fatalf("there is no address from %s in %+v", from, s.Addresses)
	return session.ServiceAddress{}
}

// status sends a request and returns the status of the answer.
func status(t *testing.T, client *http.Client, url, host, token string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if req.Host = host; token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

func TestServicesAreReachedOnTheMachineItself(t *testing.T) {
	t.Parallel()
	m := openTo(t, session.NetworkListener{})
	ready := m.await("demo", is(session.ServiceReady))
	at := address(t, ready, session.FromMachine)
	if len(ready.Addresses) != 1 || at.Fault != "" || !strings.HasPrefix(at.URL, "http://127.0.0.1:") {
		t.Fatalf("it is reached at %+v", ready.Addresses)
	}
	base := strings.TrimSuffix(at.URL, "/v1")
	if got := status(t, http.DefaultClient, base+"/services/demo/", "", ""); got != http.StatusOK {
		t.Errorf("it answers %d", got)
	}
	if got := status(t, http.DefaultClient, base+"/services/demo/", "evil.example", ""); got != http.StatusForbidden {
		t.Errorf("under the name of another host it answers %d", got)
	}
}

// over is a client of TLS that trusts one certificate.
func over(t *testing.T, certificate string) *http.Client {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(certificate)) {
		t.Fatalf("no certificate: %q", certificate)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func TestOtherComputersUseServicesWithTLSAndAToken(t *testing.T) {
	t.Parallel()
	m := openTo(t, session.NetworkListener{Address: freePort(t)})
	never := false
	if _, err := m.ChangeService(t.Context(), "demo", session.ServiceChange{Public: &never}); err != nil {
		t.Fatal(err)
	}
	ready := m.await("demo", is(session.ServiceReady))
	at := address(t, ready, session.FromNetwork)
	base := strings.TrimSuffix(at.URL, "/v1")
	if at.Fault != "" || !strings.HasPrefix(base, "https://127.0.0.1:") {
		t.Fatalf("it is reached at %+v", at)
	}
	token, err := m.AddServiceToken(t.Context(), "demo", session.TokenRequest{Name: "lab"})
	if err != nil {
		t.Fatal(err)
	}
	client, path := over(t, at.Certificate), base+"/services/demo/"
	for _, c := range []struct {
		host, token string
		want        int
	}{{"", token.Text, http.StatusOK}, {"", "", http.StatusUnauthorized}, {"", "sk-wrong", http.StatusUnauthorized},
		{"evil.example", token.Text, http.StatusForbidden}} {
		if got := status(t, client, path, c.host, c.token); got != c.want {
			t.Errorf("host %q, token %.3q: it answers %d, want %d", c.host, c.token, got, c.want)
		}
	}
	if err := m.RevokeServiceToken(t.Context(), "demo", token.ID); err != nil {
		t.Fatal(err)
	}
	if got := status(t, client, path, "", token.Text); got != http.StatusUnauthorized {
		t.Errorf("a revoked token is answered with %d", got)
	}
	strict := &http.Client{Transport: &http.Transport{}}
	if answer, err := strict.Get(path); err == nil {
		_ = answer.Body.Close()
		t.Error("a client that does not trust the certificate is answered")
	}
	answer, err := http.Get(strings.Replace(path, "https", "http", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusBadRequest {
		t.Errorf("without TLS it answers %d", answer.StatusCode)
	}
}
