package backend

import (
	"context"
	"fmt"

	"slipway/backend/access"
	"slipway/backend/agent"
	"slipway/backend/daemon"
	"slipway/backend/session"
	"slipway/tunnel"
	"slipway/tunnel/secure"
)

// auditName is the name of the log of what is done, in the agent's folder.
const auditName = "audit.jsonl"

// resolve gives a peer the agent as it may see it: whoever came by the person's
// own account sees everything, and a device what it was paired for.
func (d *door) resolve(peer tunnel.Peer) (session.Agent, error) {
	who, known := d.identify(peer)
	if !known {
		return nil, &session.Error{Code: "agent_call_forbidden", Message: "This device may not use the agent.",
			Hint: "Ask the agent's person to pair it anew: slipway agent pair"}
	}
	return d.gate.As(who), nil
}

// identify says who a peer is, as its transport proved it.
func (d *door) identify(peer tunnel.Peer) (access.Identity, bool) {
	if peer.Transport == "unix" {
		return d.person(), true
	}
	device, found := d.devices.find(peer.Key)
	if !found || device.Owner == "" {
		return access.Identity{}, false
	}
	who := access.Identity{Owner: device.Owner, Role: session.RoleUser, Device: peer.Key, From: peer.Address}
	if device.Role == secure.RoleAdmin {
		who.Role = session.RoleAdmin
	}
	return who, true
}

// person is the agent's own.
func (d *door) person() access.Identity {
	return access.Identity{Owner: personName(), Role: session.RoleAdmin, From: "this machine"}
}

// find returns the device with a key.
func (d *doorDevices) find(key string) (secure.Device, bool) {
	if d == nil || key == "" {
		return secure.Device{}, false
	}
	return d.list.Find(key)
}

// granted is what a device is paired for that is asked a code for. The agent's
// own person rules it from their devices, others use it.
func granted(request daemon.CodeRequest) (secure.Grant, error) {
	grant := secure.Grant{Owner: request.Owner, Role: secure.Role(request.Role)}
	if grant.Owner == "" {
		grant.Owner = personName()
	}
	switch {
	case grant.Role == "" && grant.Owner == personName():
		grant.Role = secure.RoleAdmin
	case grant.Role == "":
		grant.Role = secure.RoleUser
	case grant.Role != secure.RoleAdmin && grant.Role != secure.RoleUser:
		return grant, &session.Error{Code: "agent_pair_invalid", Message: fmt.Sprintf("%q is no role.", request.Role),
			Hint: "Write admin or user."}
	}
	if grant.Owner == agent.DefaultOwner {
		return grant, &session.Error{Code: "agent_pair_invalid",
			Message: fmt.Sprintf("%q stands for everybody and cannot be a person.", grant.Owner),
			Hint:    "Choose another name."}
	}
	return grant, nil
}

func (d *door) Audit(_ context.Context, asked session.AuditQuery) ([]access.Entry, error) {
	return d.audit.Read(asked)
}

func (d *door) Limits(context.Context) (map[string]session.Allowance, error) {
	return d.local.Agent.Allowances(), nil
}

func (d *door) SetLimit(_ context.Context, owner string, limit *session.Allowance) error {
	err := d.local.Agent.SetAllowance(owner, limit)
	d.note("SetLimit", owner, err)
	return err
}

// note writes down what the agent's person did at the machine about who may
// reach it.
func (d *door) note(method, target string, err error) {
	d.audit.Note(d.person(), access.Act{Method: method, Target: target, Err: err, Security: true})
}
