package server

import (
	"context"
	"net"
	"net/http"
	"strings"
	"time"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/hub"
	"slipway/backend/session"
	"slipway/backend/sshclient"
)

type sshRoutes struct {
	hub     *hub.Hub
	ssh     *sshclient.Client
	sockets *sockets
}

func (s sshRoutes) mount(m *mounts) {
	answer(m, route.SSHSetup, s.sshSetup)
	take(m, route.SSHUpdate, s.updateSSH)
	answer(m, route.SSHAccess, inSession(s.hub, s.sshAccess))
	answer(m, route.SSHTest, inSession(s.hub, s.testSSH))
	m.stream(route.SSHStream.Endpoint, s.sshStream)
}

func noSSH() error {
	return session.NewError(session.CodeSSHFailed, "This control plane could not set ssh up.",
		"Its log says why; the terminal works without it.")
}

func (s sshRoutes) sshSetup(*http.Request) (api.SSHSetup, error) {
	if s.ssh == nil {
		return api.SSHSetup{}, noSSH()
	}
	installed, err := s.ssh.Installed()
	if err != nil {
		return api.SSHSetup{}, err
	}
	return api.SSHSetup{
		Installed: installed, PersonFile: s.ssh.PersonFile(), ConfigFile: s.ssh.ConfigFile(), KeyFile: s.ssh.KeyFile(),
		PublicKey: s.ssh.Key(),
		Hosts: each(s.ssh.Sessions(), func(one sshclient.Session) api.SSHHost {
			return api.SSHHost{Session: string(one.ID), Names: s.ssh.Names(one.ID)}
		}),
	}, nil
}

func (s sshRoutes) updateSSH(r *http.Request, req api.SSHUpdate) (api.SSHSetup, error) {
	if s.ssh == nil {
		return api.SSHSetup{}, noSSH()
	}
	change := s.ssh.Remove
	if req.Installed {
		change = s.ssh.Install
	}
	if err := change(); err != nil {
		return api.SSHSetup{}, err
	}
	return s.sshSetup(r)
}

func (s sshRoutes) sshAccess(r *http.Request, agent session.Agent, id session.ID) (api.SSHAccess, error) {
	host, err := s.pin(r.Context(), agent, id, "")
	if err != nil {
		return api.SSHAccess{}, err
	}
	installed, err := s.ssh.Installed()
	if err != nil {
		return api.SSHAccess{}, err
	}
	of, err := agent.Get(r.Context(), id)
	if err != nil {
		return api.SSHAccess{}, err
	}
	served := ""
	if of.Spec.Type == session.System && len(of.Folders) > 0 {
		served = strings.TrimPrefix(of.Folders[0].Target, session.Home+"/")
	}
	out := api.SSHAccess{Names: s.ssh.Names(id), User: sshclient.User, Fingerprint: sshclient.Fingerprint(host),
		Installed: installed, Commands: each(s.ssh.Commands(id, installed, served),
			func(c sshclient.Command) api.SSHCommand { return api.SSHCommand(c) })}
	if installed && served == "" {
		out.Editor = s.ssh.Editor(id)
	}
	return out, nil
}

// testSSH logs in to a session and reports the result. A failed login is not an error.
func (s sshRoutes) testSSH(r *http.Request, agent session.Agent, id session.ID) (api.SSHTest, error) {
	began := time.Now()
	of, err := agent.Get(r.Context(), id)
	transfers := of.Spec.Type == session.System
	if err == nil {
		err = s.tryLogin(r.Context(), agent, id, transfers)
	}
	test := api.SSHTest{ElapsedMs: time.Since(began).Milliseconds()}
	if err == nil {
		test.Own, err = s.ssh.CheckOwn(r.Context(), id, transfers)
	}
	test.OK, test.Problem = err == nil, problemOf(err)
	return test, nil
}

func (s sshRoutes) tryLogin(ctx context.Context, agent session.Agent, id session.ID, transfers bool) error {
	host, err := s.pin(ctx, agent, id, "")
	if err != nil {
		return err
	}
	conn, err := agent.DialSSH(ctx, id, session.SSHRequest{Key: s.ssh.Key()})
	if err != nil {
		return err
	}
	return s.ssh.Check(ctx, conn, host, transfers)
}

// sshStream connects a WebSocket with the SSH server of a session: binary messages of bytes in both directions.
func (s sshRoutes) sshStream(w http.ResponseWriter, r *http.Request) error {
	return s.sockets.bridge(w, r, true, func(ctx context.Context) (stream, error) {
		agent, id, err := s.hub.Find(ctx, r.PathValue("id"))
		if err != nil {
			return nil, err
		}
		kernel := r.FormValue("kernel")
		if _, err := s.pin(ctx, agent, id, kernel); err != nil {
			return nil, err
		}
		request := session.SSHRequest{Kernel: kernel, Key: s.ssh.Key(), Bulk: r.FormValue("bulk") == "1"}
		conn, err := agent.DialSSH(ctx, id, request)
		return byteStream{conn, make([]byte, 32<<10)}, err
	})
}

// byteStream is a stream of bytes, in messages of any length.
type byteStream struct {
	net.Conn
	buffer []byte
}

func (b byteStream) take(message []byte) error {
	_, err := b.Write(message)
	return err
}

func (b byteStream) send(to *socket) error {
	n, err := b.Read(b.buffer)
	if n > 0 {
		if err := to.write(b.buffer[:n]); err != nil {
			return err
		}
	}
	return err
}

// pin pins the host key of a kernel in the configuration of ssh.
func (s sshRoutes) pin(ctx context.Context, agent session.SSH, id session.ID, kernel string) (session.SSHHost, error) {
	if s.ssh == nil {
		return session.SSHHost{}, noSSH()
	}
	host, err := agent.SSHHost(ctx, id, kernel)
	if err != nil {
		return host, err
	}
	return host, s.ssh.Pin(id, kernel, host)
}
