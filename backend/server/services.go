package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/hub"
	"slipway/backend/session"
)

type serviceRoutes struct {
	hub   *hub.Hub
	doors *doors
	chats *chats
}

func (s serviceRoutes) mount(m *mounts) {
	answer(m, route.Services, func(r *http.Request) ([]api.Service, error) {
		list, err := s.hub.Services(r.Context(), r.FormValue("agent"))
		services := make([]api.Service, len(list))
		for i, service := range list {
			services[i], _ = s.withAddress(service, nil)
		}
		return services, err
	})
	answer(m, route.ServiceDefinition, s.readDefinition)
	answer(m, route.Service, func(r *http.Request) (api.Service, error) {
		_, service, err := s.hub.FindService(r.Context(), r.PathValue("service"), r.FormValue("agent"))
		return s.withAddress(service, err)
	})
	take(m, route.ServiceDeploy, func(r *http.Request, req session.DeployRequest) (api.Service, error) {
		if req.Spec.Agent != "" && len(checkHidden(req.Spec.Env)) > 0 {
			_, has, _ := s.hub.FindService(r.Context(), req.Name, req.Spec.Agent) // without it, they are refused below
			req.Spec.Env = revealed(req.Spec.Env, has)
		}
		if wrong := checkHidden(req.Spec.Env); len(wrong) > 0 {
			return api.Service{}, session.Invalid(wrong)
		}
		return s.withAddress(s.hub.DeployService(r.Context(), req))
	})
	take(m, route.ServiceChange, func(r *http.Request, change session.ServiceChange) (api.Service, error) {
		return onService(s, r, func(agent session.Agent, name string) (api.Service, error) {
			return s.withAddress(agent.ChangeService(r.Context(), name, change))
		})
	})
	answer(m, route.ServiceRemove, func(r *http.Request) (none, error) {
		return onService(s, r, func(agent session.Agent, name string) (none, error) {
			return none{}, agent.RemoveService(r.Context(), name)
		})
	})
	take(m, route.ServiceToken, func(r *http.Request, req session.TokenRequest) (session.NewToken, error) {
		return onService(s, r, func(agent session.Agent, name string) (session.NewToken, error) {
			return agent.AddServiceToken(r.Context(), name, req)
		})
	})
	m.stream(route.ServiceChat.Endpoint, s.chat)
	answer(m, route.ServiceRevoke, func(r *http.Request) (none, error) {
		return onService(s, r, func(agent session.Agent, name string) (none, error) {
			return none{}, agent.RevokeServiceToken(r.Context(), name, r.PathValue("token"))
		})
	})
}

// withAddress adds the address of a service on this computer, and hides the values of secret-looking variables.
func (s serviceRoutes) withAddress(service session.Service, err error) (api.Service, error) {
	if err != nil {
		return api.Service{}, err
	}
	service.Revisions = slices.Clone(service.Revisions)
	for i := range service.Revisions {
		service.Revisions[i].Spec = service.Revisions[i].Spec.Redacted(session.Hidden)
	}
	return api.Service{Service: service, Address: s.address(service)}, nil
}

// address is where clients on this computer reach a service: its machine's own port, or one that leads there.
func (s serviceRoutes) address(service session.Service) string {
	if s.hub.Here(service.Agent) {
		for _, address := range service.Addresses {
			if address.From == session.FromMachine {
				return address.URL
			}
		}
	}
	return s.doors.services.address(service.Agent)
}

// onService calls the agent that has the service of a path.
func onService[Out any](s serviceRoutes, r *http.Request,
	call func(agent session.Agent, name string) (Out, error)) (Out, error) {
	name := r.PathValue("service")
	agent, _, err := s.hub.FindService(r.Context(), name, r.FormValue("agent"))
	if err != nil {
		return *new(Out), err
	}
	return call(agent, name)
}

// serviceDoors are ports of this computer that lead to the routers of machines, each with services. A machine keeps its
// port, also over restarts, so that clients keep their address. Doors only copy bytes: the router asks for tokens.
type serviceDoors struct {
	hub   *hub.Hub
	log   *slog.Logger
	shelf Shelf // nil: ports are not stored

	mu     sync.Mutex // guards the rest
	open   map[string]net.Listener
	closed bool
	ended  chan struct{} // closed with the server
}

const (
	serviceDoorsKey = "server.servicedoors"
	// connectPatience is how long a client waits for a machine that is not reached.
	connectPatience = 30 * time.Second
	connectPause    = 250 * time.Millisecond
)

// restore opens the doors of the last time.
func (d *serviceDoors) restore() {
	var ports map[string]int
	if d.shelf == nil {
		return
	}
	if _, err := d.shelf.Load(serviceDoorsKey, &ports); err != nil {
		d.log.Warn("the ports of services are not known", "err", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for agent, port := range ports {
		if err := d.install(agent, port); err != nil {
			d.log.Warn("the port of a machine's services is in use, so they get another", "agent", agent, "port", port)
		}
	}
}

// install opens the door of a machine. The caller holds mu.
func (d *serviceDoors) install(agent string, port int) error {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil || d.closed {
		return err
	}
	d.open[agent] = listener
	go d.serve(agent, listener)
	return nil
}

// address returns the base of the API of a machine's services, and opens its door first; empty if that fails.
func (d *serviceDoors) address(agent string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open[agent] == nil {
		if err := d.install(agent, 0); err != nil {
			d.log.Warn("no port can be opened for services", "err", err)
		}
		d.keep()
	}
	if d.open[agent] == nil {
		return ""
	}
	return "http://" + d.open[agent].Addr().String() + "/v1"
}

// keep stores the ports. The caller holds mu.
func (d *serviceDoors) keep() {
	if d.shelf == nil {
		return
	}
	ports := map[string]int{}
	for agent, listener := range d.open {
		ports[agent] = listener.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // of install
	}
	if err := d.shelf.Save(serviceDoorsKey, ports); err != nil {
		d.log.Warn("the ports of services are not stored", "err", err)
	}
}

func (d *serviceDoors) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		close(d.ended)
	}
	d.closed = true
	for _, listener := range d.open {
		_ = listener.Close()
	}
}

func (d *serviceDoors) serve(agent string, listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			d.log.Warn("a client of a service was not accepted", "err", err)
			time.Sleep(connectPause) // this computer has no file descriptor left
			continue
		}
		go d.carry(agent, conn)
	}
}

// carry copies bytes between a client and the router of a machine until both have ended.
func (d *serviceDoors) carry(agent string, client net.Conn) {
	defer client.Close()
	router, err := d.connect(agent)
	if err != nil {
		d.log.Warn("a machine with services is not reached", "agent", agent, "err", err)
		return
	}
	defer router.Close()
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-d.ended:
			_ = client.Close()
			_ = router.Close()
		case <-over:
		}
	}()
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(router, client)
		_ = router.Close() // whoever hangs up does not wait for an answer, which may take a model long
	})
	both.Go(func() {
		_, err := io.Copy(client, router)
		half, can := client.(interface{ CloseWrite() error })
		if err != nil || !can {
			_ = client.Close()
			_ = router.Close()
			return
		}
		_ = half.CloseWrite()
	})
	both.Wait()
}

// connect connects to the router of a machine, for which it waits while the machine is not reached.
func (d *serviceDoors) connect(agent string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), connectPatience)
	defer cancel()
	for {
		conn, err := d.hub.DialService(ctx, agent)
		if session.CodeOf(err).Detail() != session.DetailUnavailable {
			return conn, err
		}
		select {
		case <-time.After(connectPause):
		case <-ctx.Done():
			return nil, err
		}
	}
}
