package access

import (
	"testing"
	"time"

	"slipway/backend/hub/hubtest"
	"slipway/backend/session"
)

func TestServicesBelongToTheirOwners(t *testing.T) {
	gate, audit := opened(t, "/data/bob")
	ann, bob := gate.As(user("ann")), gate.As(user("bob"))
	spec := session.Spec{Image: "python:3.13"}
	// Whatever a user writes, the service is theirs and has what they may have.
	theirs, err := ann.DeployService(t.Context(),
		session.DeployRequest{Name: "llama", Owner: "bob", Spec: spec, ByAdmin: true})
	if err != nil || theirs.Owner != "ann" {
		t.Fatalf("ann deploys %+v, %v", theirs, err)
	}
	mounts := spec
	mounts.Mounts = []session.Mount{{Source: "/data/secret"}}
	if _, err := bob.DeployService(t.Context(), session.DeployRequest{Name: "prying", Spec: mounts}); session.CodeOf(
		err) != session.CodeInvalid {
		t.Errorf("a directory that is not open to bob is mounted: %v", err)
	}
	if list, err := bob.ListServices(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("bob sees %+v, %v", list, err)
	}
	if list, err := ann.ListServices(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("ann sees %+v, %v", list, err)
	}
	two := 2
	_, changed := bob.ChangeService(t.Context(), "llama", session.ServiceChange{Replicas: &two})
	_, token := bob.AddServiceToken(t.Context(), "llama", session.TokenRequest{Name: "mine"})
	for what, err := range map[string]error{"changed": changed, "given a token": token,
		"removed":              bob.RemoveService(t.Context(), "llama"),
		"robbed of a token":    bob.RevokeServiceToken(t.Context(), "llama", "t1"),
		"what is not, removed": bob.RemoveService(t.Context(), "no-such")} {
		if session.CodeOf(err) != session.CodeServiceNotFound {
			t.Errorf("ann's service is %s: %v", what, err)
		}
	}
	if s, err := ann.ChangeService(t.Context(), "llama", session.ServiceChange{Replicas: &two}); err != nil ||
		s.Replicas != 2 {
		t.Errorf("ann changes %+v, %v", s, err)
	}
	entries, err := audit.Read(session.AuditQuery{Limit: 100})
	if err != nil || len(entries) < 8 {
		t.Errorf("%d tries are written down, %v", len(entries), err)
	}
}

func TestAccountsOfServicesAreShownToTheirOwners(t *testing.T) {
	far := hubtest.New("far")
	far.SetServiceAccounts(
		session.ServiceAccount{Kind: session.AccountRequests, Service: "llama", Owner: "ann", Token: "t1"},
		session.ServiceAccount{Kind: session.AccountReplicas, Service: "llama", Owner: "ann"},
		session.ServiceAccount{Kind: session.AccountRequests, Service: "qwen", Owner: "bob"})
	_, audit := opened(t)
	gate := New(far.Agent(), inner{far, nil}, audit)
	span := session.AccountSpan{From: time.Now().Add(-time.Hour)}
	admin := Identity{Owner: "ruth", Role: session.RoleAdmin, Client: "key-of-ruth", From: "10.0.0.7"}
	for _, c := range []struct {
		who  Identity
		want int
	}{{user("ann"), 2}, {user("bob"), 1}, {user("eve"), 0}, {admin, 3}} {
		rows, err := gate.As(c.who).ServiceAccounts(t.Context(), span)
		if err != nil || len(rows) != c.want {
			t.Errorf("%s sees %+v, %v", c.who.Owner, rows, err)
		}
		for _, row := range rows {
			if c.who != admin && row.Owner != c.who.Owner {
				t.Errorf("%s sees %+v", c.who.Owner, row)
			}
		}
	}
}
