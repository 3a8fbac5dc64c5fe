package agentserver

import (
	"context"
	"errors"
	"fmt"
	"os"

	"slipway/backend/access"
	"slipway/backend/daemon"
	"slipway/backend/place"
	"slipway/backend/session"
)

func (s *Server) Status(ctx context.Context) (daemon.Status, error) {
	status := daemon.Status{
		Role: s.config.Role, PID: os.Getpid(), Version: place.Version, Commit: place.Commit, Engine: s.config.Engine,
		Instance: s.config.Instance, Program: s.program, Started: s.started, Home: s.config.Home.Dir,
	}
	if s.config.Role == daemon.RoleAgent {
		status.Keeper = daemon.Keeper(os.Getenv)
	}
	if s.clients != nil {
		status.Listen, status.Key = s.clients.address(), s.clients.key()
	}
	var err error
	if status.SHA256, err = s.sum(); err != nil {
		s.config.Log.Warn("this program cannot be read", "error", err)
	}
	live, err := s.config.Agent.List(ctx, session.Filter{Live: true})
	if err != nil {
		return status, err
	}
	status.Live = len(live)
	return status, nil
}

func (s *Server) Stop(context.Context) error {
	if s.config.Role != daemon.RoleAgent || s.config.Stop == nil {
		return session.NewError(session.CodeAgentConflict,
			fmt.Sprintf("The agent belongs to a control plane (process %d).", os.Getpid()),
			"Stop that first: slipway shutdown. Sessions keep running.")
	}
	if s.ending.CompareAndSwap(false, true) {
		s.config.Stop() // the response is still sent: the server waits for it before it ends
	}
	return nil
}

func (s *Server) EndSessions(ctx context.Context) error {
	live, err := s.config.Agent.List(ctx, session.Filter{Live: true})
	if err != nil {
		return err
	}
	var errs []error
	for _, one := range live {
		if one.Status == session.Terminating {
			continue
		}
		if _, err := s.config.Agent.Terminate(ctx, one.ID, false); err != nil &&
			session.CodeOf(err).Detail() != session.DetailConflict {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (s *Server) PairCode(_ context.Context, request session.PairRequest) (session.PairCode, error) {
	if s.clients == nil {
		return session.PairCode{}, notListening()
	}
	code, err := s.clients.offer(request, s.config.User)
	s.note("Pair", request.Owner, err)
	return code, err
}

func (s *Server) RotateKey(context.Context) (session.KeyRotation, error) {
	if s.clients == nil {
		return session.KeyRotation{}, notListening()
	}
	rotated, err := s.clients.rotate()
	s.note("Rotate", rotated.Key, err)
	if err == nil {
		s.config.Log.Info("the agent has another key", "before", rotated.Before, "key", rotated.Key)
	}
	return rotated, err
}

// note logs what the person at the machine did about access.
func (s *Server) note(method, target string, err error) {
	s.audit.Note(s.person(), access.Act{Method: method, Target: target, Err: err, Security: true})
}

func notListening() error {
	return session.NewError(session.CodePairUnavailable,
		"The agent accepts no paired computers, because it listens on no port.",
		"slipway agent stop && slipway agent start --listen 0.0.0.0:7442")
}

// admin implements what admins may call. The gate in front of it checks permission and writes the audit log.
type admin struct{ *Server }

var _ session.Admin = admin{}

func (a admin) Audit(_ context.Context, asked session.AuditQuery) ([]session.AuditEntry, error) {
	if err := asked.Check(); err != nil {
		return nil, err
	}
	return a.audit.Read(asked)
}

func (a admin) Limits(context.Context) (map[string]session.Allowance, error) {
	return a.config.Inner.Allowances(), nil
}

func (a admin) SetLimit(_ context.Context, owner string, limit *session.Allowance) error {
	return a.config.Inner.SetAllowance(owner, limit)
}

func (a admin) PairedClients(context.Context) ([]session.PairedClient, error) {
	if a.clients == nil {
		return nil, notListening()
	}
	clients := []session.PairedClient{}
	for _, one := range a.clients.list.List() {
		clients = append(clients, session.PairedClient{Key: one.Key, Name: one.Name, Owner: one.Owner,
			Role: session.Role(one.Role), Added: one.Paired, Seen: one.Seen, Live: one.Live})
	}
	return clients, nil
}

func (a admin) RevokeClient(_ context.Context, client string) error {
	if a.clients == nil {
		return notListening()
	}
	return a.clients.revoke(client)
}
