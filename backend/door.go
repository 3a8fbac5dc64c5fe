package backend

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"slipway/backend/access"
	"slipway/backend/agentrpc"
	"slipway/backend/daemon"
	"slipway/backend/place"
	"slipway/backend/session"
	"slipway/tunnel"
)

// doorConfig says what a door opens to.
type doorConfig struct {
	home   place.Home
	local  *Local
	role   string
	listen string // host:port for paired devices; empty: none
	stop   func() // asks whatever rules the agent to end; nil: it does not end this way
	log    *slog.Logger
}

// door is how the agent of this machine is reached from outside its process:
// by tunnels, and by the person at the machine.
type door struct {
	doorConfig
	sockets *daemon.Sockets
	devices *doorDevices // nil: it takes none
	audit   *access.Audit
	gate    *access.Gate
	host    *tunnel.Host
	handler *agentrpc.Handler
	started time.Time
	program string
	sum     func() (string, error)
	ending  atomic.Bool
}

var _ daemon.Daemon = (*door)(nil)

func openDoor(config doorConfig) (*door, error) {
	d := &door{doorConfig: config, started: time.Now(), sum: sync.OnceValues(daemon.ProgramSum),
		host: tunnel.NewHost(tunnel.Config{})}
	d.program, _ = os.Executable() // for people
	d.handler = agentrpc.NewHandler(agentrpc.HandlerConfig{Resolve: d.resolve, Program: place.Version, Log: config.log})
	if err := config.home.Make(); err != nil {
		return nil, err
	}
	var err error
	if d.audit, err = access.OpenAudit(config.home.Join(auditName), time.Now, config.log); err != nil {
		return nil, err
	}
	d.gate = access.New(config.local.Agent, d.audit, doorKeeper{d})
	if config.listen != "" {
		if d.devices, err = openDoorDevices(config.home, config.listen, d.audit); err != nil {
			return nil, errors.Join(err, d.audit.Close())
		}
	}
	if d.sockets, err = daemon.Listen(config.home, users(), config.log); err != nil {
		return nil, errors.Join(err, d.devices.close(), d.audit.Close())
	}
	return d, nil
}

// run lets people in until ctx ends.
func (d *door) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var group sync.WaitGroup
	var controlErr error
	part := func(do func()) {
		group.Go(func() {
			defer cancel()
			do()
		})
	}
	part(func() { controlErr = daemon.Serve(ctx, d.sockets.Control, d, d.log) })
	part(func() { d.admit(ctx, &group, d.fromSocket) })
	if d.devices != nil {
		part(func() { d.admit(ctx, &group, d.devices.listener.Accept) })
	}
	part(func() {
		if err := d.handler.ServeHost(ctx, d.host); err != nil && ctx.Err() == nil {
			d.log.Error("no more tunnels are served", "error", err)
		}
	})
	<-ctx.Done()
	err := errors.Join(d.sockets.Close(), d.devices.close(), d.host.Close())
	group.Wait()
	return errors.Join(controlErr, err, d.audit.Close())
}

// admit takes carriers until accept fails. A handshake holds up nobody else.
func (d *door) admit(ctx context.Context, group *sync.WaitGroup, accept func() (tunnel.Carrier, error)) {
	for {
		carrier, err := accept()
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
				d.log.Error("no more carriers are taken", "error", err)
			}
			return
		}
		group.Go(func() {
			if err := d.host.Serve(carrier); err != nil && ctx.Err() == nil {
				d.log.Info("a carrier was not taken", "transport", carrier.Peer.Transport, "peer", carrier.Peer.Name,
					"address", carrier.Peer.Address, "error", err)
			}
		})
	}
}

// fromSocket takes a carrier from one of the person's own programs. The socket
// has let in nobody else.
func (d *door) fromSocket() (tunnel.Carrier, error) {
	conn, err := d.sockets.Tunnel.Accept()
	if err != nil {
		return tunnel.Carrier{}, err
	}
	return tunnel.Carrier{Conn: conn, Peer: tunnel.Peer{Transport: "unix", Name: personName()}}, nil
}

func (d *door) Status(ctx context.Context) (daemon.Status, error) {
	status := daemon.Status{
		Role: d.role, PID: os.Getpid(), Version: place.Version, Commit: place.Commit, Engine: d.local.Kind,
		Instance: d.local.Instance,
		Program:  d.program, Started: d.started, Home: d.home.Dir,
	}
	if d.role == daemon.RoleAgent {
		status.Keeper = daemon.Keeper(os.Getenv)
	}
	if d.devices != nil {
		status.Listen, status.Key = d.devices.address(), d.devices.key()
	}
	var err error
	if status.SHA256, err = d.sum(); err != nil {
		d.log.Warn("this program cannot be read", "error", err)
	}
	live, err := d.local.Agent.List(ctx, session.Filter{Live: true})
	if err != nil {
		return status, err
	}
	status.Live = len(live)
	return status, nil
}

func (d *door) Stop(context.Context) error {
	if d.role != daemon.RoleAgent || d.stop == nil {
		return &session.Error{Code: "agent_stop_conflict",
			Message: fmt.Sprintf("The agent is ruled by a control plane (process %d).", os.Getpid()),
			Hint:    "End that: slipway shutdown. Sessions go on."}
	}
	if d.ending.CompareAndSwap(false, true) {
		d.stop() // the answer still goes out: the server's end waits for it
	}
	return nil
}

func (d *door) EndSessions(ctx context.Context) error {
	live, err := d.local.Agent.List(ctx, session.Filter{Live: true})
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range live {
		if s.Status == session.Terminating {
			continue
		}
		if _, err := d.local.Agent.Terminate(ctx, s.ID, false); err != nil &&
			session.CodeOf(err).Detail() != session.DetailConflict {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (d *door) Pair(_ context.Context, request daemon.CodeRequest) (daemon.Code, error) {
	if d.devices == nil {
		return daemon.Code{}, deaf()
	}
	code, err := d.devices.offer(request)
	d.note("Pair", request.Owner, err)
	return code, err
}

func (d *door) Devices(context.Context) ([]daemon.Device, error) {
	if d.devices == nil {
		return nil, deaf()
	}
	return d.devices.told(), nil
}

func (d *door) Revoke(_ context.Context, device string) error {
	if d.devices == nil {
		return deaf()
	}
	err := d.devices.revoke(device)
	d.note("Revoke", device, err)
	return err
}

func (d *door) Rotate(context.Context) (daemon.Rotated, error) {
	if d.devices == nil {
		return daemon.Rotated{}, deaf()
	}
	rotated, err := d.devices.rotate()
	d.note("Rotate", rotated.Key, err)
	if err == nil {
		d.log.Info("the agent has another key", "before", rotated.Before, "key", rotated.Key)
	}
	return rotated, err
}

func deaf() error {
	return &session.Error{Code: "agent_pair_unavailable",
		Message: "The agent takes no devices, because it listens on no port.",
		Hint:    "slipway agent stop && slipway agent start --listen 0.0.0.0:7442"}
}
