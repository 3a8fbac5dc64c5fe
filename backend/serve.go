package backend

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"slipway/backend/daemon"
	"slipway/backend/hub"
	"slipway/backend/place"
	"slipway/backend/server"
	"slipway/backend/session"
	"slipway/backend/sshclient"
	"slipway/backend/store"
)

// Config says how to serve.
type Config struct {
	Home   place.Home
	Engine string // docker, sim or auto
	Port   int    // 0: the one used last, else 7421, else any
	Assets fs.FS  // the built user interface
	// Notebook is the page of notebooks in simulated sessions; nil: they have none.
	Notebook fs.FS
	// Log gets what happens; nil: the log file in Home.
	Log *slog.Logger
	// Ready is called once, when the control plane answers; nil: nothing.
	Ready func(Ready)

	demo *demonstration // that is served; nil: what is served is real
}

// Ready says where a control plane answers.
type Ready struct {
	URL      string // http://127.0.0.1:PORT
	LoginURL string // logs a browser in, once
	Engine   string // docker or sim
	Note     string // why this engine, if there is something to say
}

const (
	usualPort = 7421
	portKey   = "server.port"
	// handover is how long a start waits for the folder while another control
	// plane gives it up.
	handover      = 5 * time.Second
	handoverPause = 20 * time.Millisecond
	// firstWord is how long a start waits for the agent to tell what there is.
	firstWord = 3 * time.Second
)

// Serve runs the control plane until ctx ends or somebody asks it to shut down.
// Sessions go on. It fails with server_start_conflict while another one holds
// the folder, and with server_listen_conflict when the port asked for is taken.
func Serve(ctx context.Context, config Config) error {
	if config.demo == nil {
		if err := notADemo(config.Home); err != nil {
			return err
		}
	}
	lock, err := hold(ctx, config.Home)
	if err != nil {
		return err
	}
	parts := closers{lock}
	if err := config.Home.RemoveServing(); err != nil { // of one that died
		return errors.Join(err, parts.Close())
	}
	if config.Log == nil {
		file, err := openLog(config.Home.LogFile(), logMost)
		if err != nil {
			return errors.Join(err, parts.Close())
		}
		parts = append(parts, file)
		config.Log = slog.New(slog.NewTextHandler(file, nil))
	}
	err = serve(ctx, config)
	if err != nil {
		config.Log.Error("the control plane failed", "error", err)
	}
	return errors.Join(err, parts.Close())
}

// hold takes the folder. One that is held although nobody serves from it is
// just being opened or given up, so it is waited for.
func hold(ctx context.Context, home place.Home) (*place.Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, handover)
	defer cancel()
	for {
		lock, err := home.Lock()
		if err == nil {
			return lock, nil
		}
		if !errors.Is(err, place.ErrLocked) {
			return nil, &session.Error{Code: "server_start_failed", Message: "The folder " + home.Dir +
				" cannot be used.", Hint: "Check its permissions, or set SLIPWAY_HOME to another one.", Err: err}
		}
		if status, ok := alone(ctx, home); ok {
			return nil, &session.Error{Code: "server_start_conflict",
				Message: fmt.Sprintf("The agent of %s runs by itself (process %d).", home.Dir, status.PID),
				Hint:    "End it first: slipway agent stop. Sessions go on.", Err: err}
		}
		_, servingErr := home.Serving()
		if servingErr == nil || ctx.Err() != nil {
			return nil, &session.Error{Code: "server_start_conflict", Message: "Another Slipway uses the folder " +
				home.Dir + ".", Hint: "Use that one, or end it first: slipway shutdown", Err: err}
		}
		select {
		case <-ctx.Done():
		case <-time.After(handoverPause):
		}
	}
}

// alone finds the daemon that rules a folder's agent, if one does.
func alone(ctx context.Context, home place.Home) (daemon.Status, bool) {
	c, err := daemon.Connect(ctx, home)
	if err != nil {
		return daemon.Status{}, false
	}
	status, err := c.Status(ctx)
	return status, err == nil && status.Role == daemon.RoleAgent
}

// serve needs the lock.
func serve(ctx context.Context, config Config) (err error) {
	log := config.Log
	token, err := ownToken(config.Home)
	if err != nil {
		return err
	}
	stopLab, err := config.demo.begin(ctx, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopLab()) }()
	local, err := openLocal(ctx, localConfig{home: config.Home, kind: config.Engine, logFile: config.Home.LogFile(),
		machine: config.demo.workstation(), notebook: config.Notebook, log: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, local.Close()) }()
	reach := newReacher(config.Home, log.With("part", "reach"))
	defer reach.tidy()
	reach.through, reach.clock = config.demo.through(), local.Clock
	h, shelf, err := OpenHub(config.Home, local, reach, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shelf.Close()) }()
	listener, port, err := listen(config.Port, config.demo.usualPort(), shelf)
	if err != nil {
		return err
	}
	if err := shelf.Save(portKey, port); err != nil {
		log.Warn("the port is not remembered", "error", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ssh, err := openSSH(config.Home, config.demo.personSSH())
	if err != nil {
		log.Warn("sessions are not reached by ssh", "error", err)
	}
	var starter server.Beside
	if config.demo == nil {
		one := &beside{}
		defer func() { err = errors.Join(err, one.end()) }()
		starter = one
	}
	s := server.New(server.Config{Hub: h, Shelf: shelf, SSH: ssh, Token: token, Users: users(), Clock: local.Clock,
		Assets: config.Assets, Demo: config.demo.shown(reach), Beside: starter, Shutdown: cancel,
		LogFile: config.Home.LogFile(), Log: log.With("part", "server")})
	log.Info("serving", "port", port, "engine", local.Kind, "note", local.Note, "version", place.Version, "pid",
		os.Getpid())
	p := plane{config: config, local: local, reach: reach, hub: h, server: s, listener: listener, port: port,
		door: planeDoor(config, local), ssh: ssh}
	err = p.run(ctx, cancel)
	log.Info("stopped")
	return err
}

// plane is a control plane that is put together and not yet running.
type plane struct {
	config   Config
	local    *Local
	reach    *reacher
	hub      *hub.Hub
	server   *server.Server
	listener net.Listener
	port     int
	door     *door             // nil: it could not be opened
	ssh      *sshclient.Client // nil: as door
}

// planeDoor lets the person's other computers reach this one by ssh as they
// reach any agent. A control plane does without it where it cannot be opened.
func planeDoor(config Config, local *Local) *door {
	settings, err := daemon.LoadSettings(config.Home)
	var d *door
	if err == nil {
		d, err = openDoor(doorConfig{home: config.Home, local: local, role: daemon.RolePlane, listen: settings.Listen,
			log: config.Log.With("part", "door")})
	}
	if err != nil {
		config.Log.Warn("other computers cannot reach this agent", "error", err)
		return nil
	}
	return d
}

// run runs every part until ctx ends and waits for all of them: the server
// first, the agent last.
func (p *plane) run(ctx context.Context, cancel context.CancelFunc) error {
	agentCtx, stopAgent := context.WithCancel(context.WithoutCancel(ctx))
	hubCtx, stopHub := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAgent()
	defer stopHub()
	var agentDone, hubDone, doorDone sync.WaitGroup
	if p.door != nil {
		doorDone.Go(func() {
			if err := p.door.run(ctx); err != nil && ctx.Err() == nil {
				p.config.Log.Warn("other computers cannot reach this agent any more", "error", err)
			}
		})
	}
	agentDone.Go(func() {
		if err := p.local.Run(agentCtx); err != nil && agentCtx.Err() == nil {
			p.config.Log.Error("the agent ended", "error", err)
			cancel()
		}
	})
	hubDone.Go(func() { p.hub.Run(hubCtx) })
	hubDone.Go(func() { p.reach.Run(hubCtx) })
	if p.ssh != nil {
		hubDone.Go(func() { keepSSH(hubCtx, p.hub, p.ssh, p.config.Log.With("part", "ssh")) })
	}
	err := p.answer(ctx)
	cancel()
	doorDone.Wait()
	stopHub()
	hubDone.Wait()
	stopAgent()
	agentDone.Wait()
	return err
}

// answer serves until ctx ends. Whoever looks for a control plane finds this
// one from the moment it answers to the moment it stops.
func (p *plane) answer(ctx context.Context) error {
	if err := errors.Join(p.config.demo.play(ctx, p.hub, p.local), p.config.demo.join(ctx, p.hub)); err != nil {
		return errors.Join(err, p.listener.Close())
	}
	var playing sync.WaitGroup
	story, over := context.WithCancel(ctx)
	playing.Go(func() { p.config.demo.keepPlaying(story, p.local, p.config.Log) })
	defer playing.Wait()
	defer over()
	waiting, done := context.WithTimeout(ctx, firstWord)
	p.hub.WaitHeard(waiting)
	done()
	url := "http://127.0.0.1:" + strconv.Itoa(p.port)
	failed := make(chan error, 1)
	go func() { failed <- p.server.Run(ctx, p.listener) }()
	serving := place.Serving{PID: os.Getpid(), Port: p.port, URL: url, Engine: p.local.Kind, Version: place.Version,
		Demo: p.config.demo != nil}
	p.config.demo.tellTime(&serving)
	saved := p.config.Home.SaveServing(serving)
	if saved == nil && p.config.Ready != nil {
		login := url + "/login?code=" + p.server.LoginCode(server.FirstCodeLife)
		p.config.Ready(Ready{URL: url, LoginURL: login, Engine: p.local.Kind, Note: p.local.Note})
	}
	if saved != nil {
		return errors.Join(saved, p.listener.Close(), <-failed)
	}
	select {
	case err := <-failed:
		return errors.Join(err, p.config.Home.RemoveServing())
	case <-ctx.Done():
	}
	return errors.Join(p.config.Home.RemoveServing(), <-failed)
}

// ownToken reads the token of the folder, or makes one at the first start.
func ownToken(home place.Home) (string, error) {
	token, err := home.Token()
	if err == nil && token != "" {
		return token, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	token = strings.ToLower(rand.Text() + rand.Text())
	return token, home.SaveToken(token)
}

// listen takes the port asked for, or else the one used last, the usual one, or
// any. On loopback only.
func listen(asked, usual int, shelf *store.Shelf) (net.Listener, int, error) {
	if asked != 0 {
		listener, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(asked))
		if err != nil {
			return nil, 0, &session.Error{Code: "server_listen_conflict",
				Message: fmt.Sprintf("Port %d cannot be used.", asked),
				Hint:    "Another program may have it; choose another port, or none.", Err: err}
		}
		return listener, asked, nil
	}
	last := usual
	if _, err := shelf.Load(portKey, &last); err != nil {
		last = usual
	}
	var err error
	for _, port := range []int{last, usual, 0} {
		var listener net.Listener
		if listener, err = net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(port)); err != nil {
			continue
		}
		return listener, listener.Addr().(*net.TCPAddr).Port, nil
	}
	return nil, 0, &session.Error{Code: "server_listen_unavailable",
		Message: "No port of this computer can be listened on.", Hint: "Check the loopback interface.", Err: err}
}

var _ io.Closer = closers(nil)
