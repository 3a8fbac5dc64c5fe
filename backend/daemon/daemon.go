// Package daemon manages an agent that runs by itself, without a window or a control plane: starting it so that it
// outlives the starter ([Start]), finding and calling it from programs on its machine ([Connect], [Bridge]), and
// replacing it with another version without ending sessions ([Switch]).
//
// A machine's agent, whether a daemon or part of a control plane, listens on two sockets in its folder that only its
// owner can open: one takes tunnel carriers, the other serves a small HTTP API for commands on the machine ([Serve],
// [Client]).
package daemon

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/moby/sys/atomicwriter"

	"slipway/backend/place"
	"slipway/backend/session"
)

// Values of [Status].Role.
const (
	RoleAgent = "agent" // a daemon: it can be stopped and replaced remotely
	RolePlane = "plane" // the control plane of a person at that machine
)

// Status describes the running agent of a folder.
type Status struct {
	Role    string    `json:"role"`
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Commit  string    `json:"commit"`
	Engine  string    `json:"engine"` // docker or sim
	Program string    `json:"program"`
	SHA256  string    `json:"sha256"` // of the program, in hex
	Live    int       `json:"live"`   // sessions that have not ended
	Started time.Time `json:"started"`
	Home    string    `json:"home"`
	Listen  string    `json:"listen,omitempty"` // host:port for paired computers; empty: none
	Key     string    `json:"key,omitempty"`    // fingerprint of the agent's key, if it listens
	Keeper  string    `json:"keeper,omitempty"` // of a daemon: systemd or none

	Instance string `json:"instance,omitempty"` // random id of the agent's store, as in [session.Machine]
}

// Daemon answers commands on the machine.
type Daemon struct {
	Process
	session.Admin
	session.Pairing
}

// Process is the process that runs an agent.
type Process interface {
	Status(ctx context.Context) (Status, error)
	// Stop asks the process to end; sessions keep running.
	Stop(ctx context.Context) error
	// EndSessions asks every live session to end, without waiting.
	EndSessions(ctx context.Context) error
}

// Files in the folder.
const (
	tunnelSocket  = "agent.sock"
	controlSocket = "control.sock"
	settingsFile  = "agent.json"
	logName       = "agent.log"
	switchLock    = "switch.lock"
)

// LogFile returns the log of the daemon of a folder.
func LogFile(home place.Home) string { return home.Join(logName) }

// Settings are the options of a daemon. They are stored, because whoever starts it next may not know them.
type Settings struct {
	Engine string            `json:"engine,omitempty"` // docker, slurm, sim, auto; empty: docker or else slurm
	Listen string            `json:"listen,omitempty"` // host:port for paired computers; empty: none
	Env    map[string]string `json:"env,omitempty"`    // for the daemon only, such as DOCKER_HOST
}

// ListenOff is the listen address that turns listening off.
const ListenOff = "off"

// LoadSettings reads the settings of a folder; zero if there are none.
func LoadSettings(home place.Home) (Settings, error) {
	var s Settings
	data, err := os.ReadFile(home.Join(settingsFile))
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Settings{}, session.WrapError(err, session.CodeServerInvalid,
			"The file "+home.Join(settingsFile)+" cannot be read.", "Correct or remove it.")
	}
	return s, nil
}

// Save writes the settings, readable only by their owner.
func (s Settings) Save(home place.Home) error {
	if err := home.Make(); err != nil {
		return err
	}
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return atomicwriter.WriteFile(home.Join(settingsFile), append(data, '\n'), 0o600)
}

// Merge returns s with the values that other sets.
func (s Settings) Merge(other Settings) Settings {
	s.Engine = cmp.Or(other.Engine, s.Engine)
	switch other.Listen {
	case "":
	case ListenOff:
		s.Listen = ""
	default:
		s.Listen = other.Listen
	}
	if len(other.Env) > 0 {
		env := map[string]string{}
		maps.Copy(env, s.Env)
		maps.Copy(env, other.Env)
		s.Env = env
	}
	return s
}

// serve registers the handlers of the control socket.
func (d Daemon) serve(mux *http.ServeMux) {
	ask(mux, "GET /status", d.Status)
	obey(mux, "POST /stop", func(r *http.Request) error { return d.Stop(r.Context()) })
	obey(mux, "POST /end", func(r *http.Request) error { return d.EndSessions(r.Context()) })
	take(mux, "POST /audit", func(r *http.Request, asked session.AuditQuery) (any, error) {
		return d.Audit(r.Context(), asked)
	})
	ask(mux, "GET /limits", d.Limits)
	take(mux, "PUT /limits/{owner}", func(r *http.Request, limit session.Allowance) (any, error) {
		return struct{}{}, d.SetLimit(r.Context(), r.PathValue("owner"), &limit)
	})
	obey(mux, "DELETE /limits/{owner}", func(r *http.Request) error {
		return d.SetLimit(r.Context(), r.PathValue("owner"), nil)
	})
	ask(mux, "GET /devices", d.PairedClients)
	obey(mux, "DELETE /devices/{device}", func(r *http.Request) error {
		return d.RevokeClient(r.Context(), r.PathValue("device"))
	})
	take(mux, "POST /pair", func(r *http.Request, request session.PairRequest) (any, error) {
		return d.PairCode(r.Context(), request)
	})
	ask(mux, "POST /rotate", d.RotateKey)
}

func (c *Client) Audit(ctx context.Context, asked session.AuditQuery) (entries []session.AuditEntry, err error) {
	return entries, c.call(ctx, http.MethodPost, "/audit", asked, &entries)
}

func (c *Client) Limits(ctx context.Context) (limits map[string]session.Allowance, err error) {
	return limits, c.call(ctx, http.MethodGet, "/limits", nil, &limits)
}

func (c *Client) SetLimit(ctx context.Context, owner string, limit *session.Allowance) error {
	if limit == nil {
		return c.call(ctx, http.MethodDelete, "/limits/"+url.PathEscape(owner), nil, nil)
	}
	return c.call(ctx, http.MethodPut, "/limits/"+url.PathEscape(owner), limit, nil)
}

func (c *Client) PairedClients(ctx context.Context) (clients []session.PairedClient, err error) {
	return clients, c.call(ctx, http.MethodGet, "/devices", nil, &clients)
}

func (c *Client) RevokeClient(ctx context.Context, client string) error {
	return c.call(ctx, http.MethodDelete, "/devices/"+url.PathEscape(client), nil, nil)
}

func (c *Client) PairCode(ctx context.Context, request session.PairRequest) (code session.PairCode, err error) {
	return code, c.call(ctx, http.MethodPost, "/pair", request, &code)
}

func (c *Client) RotateKey(ctx context.Context) (rotated session.KeyRotation, err error) {
	return rotated, c.call(ctx, http.MethodPost, "/rotate", nil, &rotated)
}

const (
	// callTime is the time limit of one call.
	callTime = 10 * time.Second
	// answerMost is the largest request or answer, in bytes.
	answerMost = 1 << 20
	// endTime is how long running requests may take after the daemon's end.
	endTime = time.Second
)

// ErrNotRunning means that no agent runs for a folder.
var ErrNotRunning = errors.New("no agent is running")

// Serve answers on listener until ctx ends.
func Serve(ctx context.Context, listener net.Listener, d Daemon, log *slog.Logger) error {
	mux := http.NewServeMux()
	d.serve(mux)
	web := http.Server{Handler: mux, ReadHeaderTimeout: callTime, ReadTimeout: callTime, WriteTimeout: 2 * callTime,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	err := web.Shutdown(limited)
	if err != nil {
		err = web.Close()
	}
	<-ended //nolint:errcheck // always http.ErrServerClosed
	return err
}

func answer(mux *http.ServeMux, pattern string, do func(*http.Request) (any, error)) {
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		value, err := do(r)
		if err != nil {
			w.WriteHeader(http.StatusConflict)
			value = session.AsError(err, session.CodeAgentInternal)
		}
		_ = json.NewEncoder(w).Encode(value) // fails only if the client is gone
	})
}

// ask answers a request without a body.
func ask[T any](mux *http.ServeMux, pattern string, do func(context.Context) (T, error)) {
	answer(mux, pattern, func(r *http.Request) (any, error) { return do(r.Context()) })
}

// obey answers a request without a result.
func obey(mux *http.ServeMux, pattern string, do func(*http.Request) error) {
	answer(mux, pattern, func(r *http.Request) (any, error) { return struct{}{}, do(r) })
}

// take answers a request with a body, which it decodes strictly.
func take[T any](mux *http.ServeMux, pattern string, do func(*http.Request, T) (any, error)) {
	answer(mux, pattern, func(r *http.Request) (any, error) {
		var body T
		decoder := json.NewDecoder(io.LimitReader(r.Body, answerMost))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&body); err != nil {
			return nil, session.WrapError(err, session.CodeAgentInvalid, "The request cannot be read.",
				"Use the same version on both sides.")
		}
		return do(r, body)
	})
}

// Client calls the agent of a folder through its control socket.
type Client struct {
	home place.Home
	web  http.Client
}

// Connect returns a client of the running agent of a folder, or fails with [ErrNotRunning].
func Connect(ctx context.Context, home place.Home) (*Client, error) {
	c := &Client{home: home}
	c.web.Transport = &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dial(ctx, home, controlSocket)
		}}
	_, err := c.Status(ctx)
	if err != nil && session.CodeOf(err) == "" {
		return nil, fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	return c, err
}

func (c *Client) Status(ctx context.Context) (status Status, err error) {
	return status, c.call(ctx, http.MethodGet, "/status", nil, &status)
}

func (c *Client) Stop(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/stop", nil, nil)
}

func (c *Client) EndSessions(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/end", nil, nil)
}

// StopAndWait stops the agent and returns when the folder is unlocked.
func (c *Client) StopAndWait(ctx context.Context) error {
	if err := c.Stop(ctx); err != nil {
		return err
	}
	err := c.home.WaitUnlocked(ctx)
	if err != nil && ctx.Err() != nil {
		err = session.WrapError(err, session.CodeAgentTimeout, "The agent did not end in time.",
			"Look at its log, "+LogFile(c.home)+".")
	}
	return err
}

// call makes one request. A failure that the agent reports is a [session.Error].
func (c *Client) call(ctx context.Context, method, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://agent"+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	response, err := c.web.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	data, err = io.ReadAll(io.LimitReader(response.Body, answerMost))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		told := &session.Error{}
		if json.Unmarshal(data, told) != nil || told.Code == "" {
			return session.NewError(session.CodeAgentInvalid, "The agent answers "+response.Status+".",
				"It may be another version: slipway agent status")
		}
		return told
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(data, into)
}
