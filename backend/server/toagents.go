package server

import (
	"time"

	"slipway/backend/api"
	"slipway/backend/hub"
)

func agentOut(a hub.Agent) api.Agent {
	out := api.Agent{
		Name: a.Name, Address: a.Address, Local: a.Local, Group: a.Group, Owner: a.Link.Owner, Role: a.Link.Role,
		Fingerprint: a.Fingerprint, Version: a.Link.Version, Upgrade: a.Link.Upgrade, Live: a.Live,
		Connection: connectionOut(a), Question: maybe(a.Link.Question, questionOut),
		Untrusted: maybe(a.Distrust, untrustedOut),
	}
	if !a.AddedAt.IsZero() {
		out.AddedAt = &a.AddedAt
	}
	return out
}

func untrustedOut(d hub.Distrust) api.Untrusted {
	return api.Untrusted{Error: *d.Err, Since: d.Since, Last: d.Last, Count: d.Count}
}

func connectionOut(a hub.Agent) api.Connection {
	link := a.Link
	out := api.Connection{
		State: string(link.State), Since: link.Since, LastHeard: moment(a.LastHeard), Transport: link.Transport,
		Carriers: link.Carriers, NextTry: moment(link.NextTry), Waits: link.Waits,
	}
	if link.RTT > 0 {
		ms := float64(link.RTT.Microseconds()) / 1000
		out.RTTMs = &ms
	}
	if link.Err != nil {
		out.Error = asError(link.Err)
	}
	return out
}

// moment leaves out a time that is unknown.
func moment(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

func questionOut(q hub.Question) api.Question {
	return api.Question{Kind: string(q.Kind), Text: q.Text, Pinned: q.Pinned, Found: q.Found, Asked: q.Asked}
}

func pairedOut(d hub.PairedClient) api.PairedClient {
	return api.PairedClient{Name: d.Name, Fingerprint: d.Key, Owner: d.Owner, Role: string(d.Role), This: d.This,
		AddedAt: d.Added, LastSeen: moment(d.Seen)}
}
