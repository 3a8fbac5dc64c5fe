package agentserver

import (
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"slipway/backend/access"
	"slipway/backend/agentrpc"
	"slipway/backend/place"
	"slipway/backend/session"
	"slipway/tunnel"
	"slipway/tunnel/secure"
)

// pairedClients admits paired computers. It is safe for concurrent use; a nil one admits none.
type pairedClients struct {
	keyFile  string
	list     *secure.Clients
	pairings *secure.Pairings
	listener *secure.Listener
	audit    *access.Audit

	mu       sync.Mutex // guards identity, also while it is replaced
	identity *secure.Identity
}

func openPairedClients(home place.Home, listen string, audit *access.Audit) (*pairedClients, error) {
	d := &pairedClients{pairings: secure.NewPairings(time.Now), keyFile: home.Join("agent.key"), audit: audit}
	var err error
	if d.identity, err = secure.OpenIdentity(d.keyFile); err != nil {
		return nil, session.WrapError(err, session.CodeServerInvalid, "The agent's key cannot be read.",
			"Repair or remove "+home.Join("agent.key")+"; without it every client must pair again.")
	}
	if d.list, err = secure.OpenClients(home.Join("devices.json"), time.Now); err != nil {
		return nil, session.WrapError(err, session.CodeServerInvalid, "The list of paired clients cannot be read.",
			"Repair or remove "+home.Join("devices.json")+"; without it every client must pair again.")
	}
	host, _ := os.Hostname() // only displayed
	d.listener, err = secure.Listen(listen, secure.ListenConfig{Identity: d.identity, Clients: d.list,
		Pairings: d.pairings, Name: host, Observe: d.observe})
	if err != nil {
		return nil, session.WrapError(err, session.CodeListenConflict,
			fmt.Sprintf("The agent cannot listen on %s.", listen),
			"Another program may have the port: slipway agent start --listen 0.0.0.0:PORT, or --listen off.")
	}
	return d, nil
}

// observe logs pairings, attempts and key changes.
func (d *pairedClients) observe(e secure.Event) {
	who := access.Identity{Client: e.Key, From: e.Address}
	client, known := d.list.Find(e.Key)
	if known {
		who.Owner, who.Role = client.Owner, session.Role(client.Role)
	}
	act := access.Act{Security: true, Target: e.Name}
	switch e.Kind {
	case secure.EventPaired:
		act.Method = "PairDevice"
	case secure.EventWrongCode:
		act.Method, act.Err = "TryCode", &session.Error{Code: session.CodePairCode}
	case secure.EventNoCode:
		act.Method, act.Err, act.Stranger = "TryCode", &session.Error{Code: session.CodePairExpired}, true
	case secure.EventKeyMoved:
		act.Method, act.Target = "MoveKey", e.Before
	case secure.EventRefused:
		act.Method, act.Err, act.Stranger = "Connect", &session.Error{Code: session.CodeNotPaired}, true
		if known {
			act.Err = &session.Error{Code: session.CodeUnreachable}
		}
	default:
		return
	}
	d.audit.Note(who, act)
}

// address returns where the agent listens, as people enter it elsewhere.
func (d *pairedClients) address() string {
	at, ok := d.listener.Addr().(*net.TCPAddr)
	if !ok {
		return d.listener.Addr().String()
	}
	host := at.IP.String()
	if at.IP.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	return net.JoinHostPort(host, fmt.Sprint(at.Port))
}

func (d *pairedClients) key() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.identity.Fingerprint()
}

// rotate replaces the agent's key and closes the connections. The old key signs the new one, so clients accept it.
func (d *pairedClients) rotate() (session.KeyRotation, error) {
	d.mu.Lock()
	before := d.identity
	next, err := before.Rotate()
	if err == nil {
		err = next.Save(d.keyFile)
	}
	if err == nil {
		d.identity = next
		d.listener.SetIdentity(next)
	}
	d.mu.Unlock()
	if err != nil {
		return session.KeyRotation{}, session.WrapError(err, session.CodeAgentInternal,
			"The new key cannot be kept, so the old one stays.", "Look at the disk that has "+d.keyFile+".")
	}
	return session.KeyRotation{Before: before.Fingerprint(), Key: next.Fingerprint(), Clients: d.list.Disconnect()}, nil
}

func (d *pairedClients) offer(request session.PairRequest, user string) (session.PairCode, error) {
	grant, err := granted(request, user)
	if err != nil {
		return session.PairCode{}, err
	}
	offer, err := d.pairings.Offer(grant)
	if err != nil {
		return session.PairCode{}, agentrpc.FaultError(err)
	}
	return session.PairCode{Code: offer.Code, Address: d.address(), Key: d.key(), Expires: offer.Expires}, nil
}

// revoke removes a client by its fingerprint, or by its name if that is unique.
func (d *pairedClients) revoke(client string) error {
	var keys []string
	for _, one := range d.list.List() {
		if one.Key == client {
			keys = []string{one.Key}
			break
		}
		if one.Name == client {
			keys = append(keys, one.Key)
		}
	}
	switch len(keys) {
	case 0:
		return session.NewError(session.CodeAgentNotFound, fmt.Sprintf("No paired computer %q.", client),
			"List them: slipway agent clients")
	case 1:
		return agentrpc.FaultError(d.list.Revoke(keys[0]))
	}
	return session.NewError(session.CodeAgentConflict,
		fmt.Sprintf("%d paired computers have the name %q.", len(keys), client),
		"Name it by its key: slipway agent clients")
}

func (d *pairedClients) close() error {
	if d == nil {
		return nil
	}
	return d.listener.Close()
}

func (d *pairedClients) find(key string) (secure.Client, bool) {
	if d == nil || key == "" {
		return secure.Client{}, false
	}
	return d.list.Find(key)
}

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
