package agentserver

import (
	"fmt"

	"slipway/backend/access"
	"slipway/backend/session"
	"slipway/tunnel"
	"slipway/tunnel/secure"
)

// resolve returns the agent as a peer may see it: all of it for the person's own account, else what it was paired for.
func (s *Server) resolve(peer tunnel.Peer) (session.Agent, error) {
	who, known := s.identify(peer)
	if !known {
		return session.Agent{}, session.NewError(session.CodeAgentForbidden, "This computer may not use the agent.",
			"Pair it again: slipway agent pair on the agent's machine shows a code")
	}
	return s.gate.As(who), nil
}

// identify returns the identity of a peer, as proved by its transport.
func (s *Server) identify(peer tunnel.Peer) (access.Identity, bool) {
	if peer.Transport == "unix" {
		return s.person(), true
	}
	client, found := s.clients.find(peer.Key)
	if !found || client.Owner == "" {
		return access.Identity{}, false
	}
	who := access.Identity{Owner: client.Owner, Role: session.RoleUser, Client: peer.Key, From: peer.Address}
	if client.Role == secure.RoleAdmin {
		who.Role = session.RoleAdmin
	}
	return who, true
}

// person returns the identity of the agent's own user.
func (s *Server) person() access.Identity {
	return access.Identity{Owner: s.config.User, Role: session.RoleAdmin, From: "this machine"}
}

// granted returns what a client is paired for. The default role is admin for the agent's own user, and user for others.
func granted(request session.PairRequest, user string) (secure.Grant, error) {
	grant := secure.Grant{Owner: request.Owner, Role: secure.Role(request.Role)}
	if grant.Owner == "" {
		grant.Owner = user
	}
	switch {
	case grant.Role == "" && grant.Owner == user:
		grant.Role = secure.RoleAdmin
	case grant.Role == "":
		grant.Role = secure.RoleUser
	case grant.Role != secure.RoleAdmin && grant.Role != secure.RoleUser:
		return grant, session.NewError(session.CodeAgentInvalid, fmt.Sprintf("Unknown role %q.", request.Role),
			"Use admin or user.")
	}
	if grant.Owner == session.DefaultOwner {
		return grant, session.NewError(session.CodeAgentInvalid,
			fmt.Sprintf("%q means everybody and cannot be the name of a person.", grant.Owner), "Choose another name.")
	}
	return grant, nil
}
