package images

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"time"

	"github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/cli/cli/config"
	"github.com/docker/cli/cli/config/configfile"
	"github.com/docker/cli/cli/config/credentials"
	"github.com/docker/cli/cli/config/types"
	"github.com/docker/docker-credential-helpers/client"
	helpers "github.com/docker/docker-credential-helpers/credentials"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/registry"

	"slipway/backend/engine"
	"slipway/backend/engine/docker/daemon"
	"slipway/backend/session"
	"slipway/gpu"
)

// Pull also fails with engine_call_invalid for an invalid name, engine_pull_forbidden and engine_create_unsupported.
func (s *Store) Pull(ctx context.Context, ref string, login engine.Login,
	progress func(session.Pull)) (private bool, err error) {
	if session.IsEmptyImage(ref) {
		return false, daemon.Failure(ctx, s.daemon.MakeEmptyImage(ctx))
	}
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return false, notName(session.CodeEngineInvalid, ref, err)
	}
	header, err := s.headerFor(ctx, reference.Domain(named), login)
	if err != nil {
		return false, err
	}
	stream, err := s.daemon.API.ImagePull(ctx, ref, image.PullOptions{RegistryAuth: header})
	if err != nil {
		return false, pullFailure(ctx, ref, err)
	}
	defer stream.Close() //nolint:errcheck // read to its end, or given up
	if err := follow(stream, progress); err != nil {
		return false, pullFailure(ctx, ref, err)
	}
	return header != "" && !s.public(ctx, ref), nil
}

// headerFor encodes a login for the daemon; "" if there is none for the registry.
func (s *Store) headerFor(ctx context.Context, domain string, login engine.Login) (string, error) {
	if own := login.For(domain); own != nil {
		return registry.EncodeAuthConfig(registry.AuthConfig{Username: own.User, Password: own.Password,
			ServerAddress: serverOf(domain)})
	}
	if !login.Stored {
		return "", nil
	}
	return loginHeader(ctx, s.logins, domain)
}

// public reports whether a registry describes an image without a login. Without an answer it is taken for private.
func (s *Store) public(ctx context.Context, ref string) bool {
	ctx, cancel := s.daemon.Brief(ctx)
	defer cancel()
	_, err := s.daemon.API.DistributionInspect(ctx, ref, "")
	return err == nil
}

// message is one line of the stream of a pull, load or build.
type message struct {
	Status string `json:"status"`
	ID     string `json:"id"` // of the layer
	Detail struct {
		Current int64 `json:"current"`
		Total   int64 `json:"total"`
	} `json:"progressDetail"`
	Error struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"errorDetail"`
	ErrorText string          `json:"error"`
	Aux       json.RawMessage `json:"aux"`
}

func (m message) failure() string { return cmp.Or(m.Error.Message, m.ErrorText) }

type streamError struct{ text string }

func (e *streamError) Error() string { return e.text }

// reportEvery limits the progress reports of a quick pull.
const reportEvery = 200 * time.Millisecond

// follow reports progress, from this goroutine only, until the stream ends, also while nothing arrives.
func follow(stream io.Reader, progress func(session.Pull)) error {
	messages, failed, stop := reading(stream)
	defer stop()
	meter := newMeter()
	ticker := time.NewTicker(reportEvery)
	defer ticker.Stop()
	changed, layers := false, 0
	for {
		select {
		case m := <-messages:
			changed = meter.note(m, time.Now()) || changed
			if len(meter.layers) == layers {
				continue
			}
			layers = len(meter.layers)
		case now := <-ticker.C:
			if !changed && meter.last.Rate == 0 {
				continue
			}
			meter.mark(now)
		case err := <-failed:
			if err == nil {
				progress(meter.pull(time.Now()))
			}
			return err
		}
		changed = false
		progress(meter.pull(time.Now()))
	}
}

// reading decodes a stream until its end, whose error failed gets, or until stop is called.
func reading(stream io.Reader) (messages <-chan message, failed <-chan error, stop func()) {
	passed, ended, done := make(chan message), make(chan error, 1), make(chan struct{})
	go func() {
		ended <- decode(stream, func(m message) bool {
			select {
			case passed <- m:
				return true
			case <-done:
				return false
			}
		})
	}()
	return passed, ended, func() { close(done) }
}

func decode(stream io.Reader, pass func(message) (more bool)) error {
	lines := json.NewDecoder(stream)
	for {
		var m message
		err := lines.Decode(&m)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if text := m.failure(); text != "" {
			return &streamError{text: text}
		}
		if !pass(m) {
			return nil
		}
	}
}

// pullFailure says why a pull failed. The registry's answer is mostly known as text, see [daemon.ReasonOf].
func pullFailure(ctx context.Context, ref string, err error) error {
	if err == nil {
		return nil
	}
	var said *streamError
	if ctx.Err() != nil || !errors.As(err, &said) && daemon.Silent(ctx, err) {
		return daemon.Failure(ctx, err)
	}
	text := daemon.Text(err)
	image := session.Fill("image", ref)
	var cause *session.Cause
	switch why := daemon.ReasonOf(text, err); {
	case why == daemon.ReasonNoSpace:
		return daemon.Failure(ctx, err)
	case why == daemon.ReasonRateLimited:
		cause = session.Because(session.CodePullForbidden, session.Say("pullRateLimited", image),
			session.Say("pullRateLimitedHint"))
	case why == daemon.ReasonWrongPlatform:
		cause = session.Because(session.CodeEngineUnsupported, session.Say("pullWrongPlatform", image),
			session.Say("pullWrongPlatformHint"))
	case why == daemon.ReasonForbidden, errdefs.IsUnauthorized(err), errdefs.IsPermissionDenied(err):
		cause = session.Because(session.CodePullForbidden, session.Say("pullForbidden", image),
			session.Say("pullForbiddenHint"))
	case why == daemon.ReasonNoManifest, errdefs.IsNotFound(err):
		cause = session.Because(session.CodePullNotFound, session.Say("pullNotFound", image),
			session.Say("pullNotFoundHint"))
	case why == daemon.ReasonUnreachable:
		cause = session.Because(session.CodePullUnavailable, session.Say("pullUnreachable", image),
			session.Say("pullUnreachableHint"))
	case errdefs.IsInvalidArgument(err):
		cause = session.Because(session.CodeEngineInvalid, session.Say("pullInvalid", image),
			session.Say("pullInvalidHint"))
	default:
		cause = session.Because(session.CodeEngineInternal,
			session.Say("pullFailed", image, session.Fill("why", daemon.Sentence(text))), session.Say("pullFailedHint"))
	}
	return cause.Failure(err)
}

// meter adds up the layers of a pull. Its progress never goes back.
type meter struct {
	layers map[string]*layer
	marks  []mark // what was downloaded when, over the last rateWindow
	last   session.Pull
}

type layer struct {
	current, total int64
	sized          bool // total is known
	done           bool // downloaded and unpacked, or there before
}

type mark struct {
	at      time.Time
	current int64
}

const rateWindow = 5 * time.Second

func newMeter() *meter { return &meter{layers: map[string]*layer{}} }

// note handles one message and reports whether it changed anything. The states of layers exist only as these words.
func (m *meter) note(said message, now time.Time) bool {
	if said.ID == "" {
		return false
	}
	l := m.layers[said.ID]
	if l == nil {
		switch said.Status {
		case "Pulling fs layer", "Waiting", "Downloading", "Already exists":
			l = &layer{}
			m.layers[said.ID] = l
		default:
			return false // the tag being pulled, which looks like a layer
		}
	}
	switch said.Status {
	case "Downloading":
		l.downloading(said.Detail.Current, said.Detail.Total)
	case "Verifying Checksum", "Download complete", "Extracting":
		l.complete()
	case "Pull complete":
		l.complete()
		l.done = true
	case "Already exists":
		l.sized, l.done = true, true
	}
	m.mark(now)
	return true
}

// downloading records the progress of a layer. After a cut, Docker resumes and counts only the rest.
func (l *layer) downloading(current, total int64) {
	if l.sized && total > 0 && total < l.total {
		current += l.total - total
	}
	l.current = max(l.current, current)
	if total > 0 {
		l.total, l.sized = max(l.total, total), true
	}
}

// complete records that a layer is downloaded. One too small to report its size counts as nothing.
func (l *layer) complete() {
	l.current = max(l.current, l.total)
	l.total, l.sized = l.current, true
}

// mark records the bytes downloaded, at most ten times a second.
func (m *meter) mark(now time.Time) {
	if n := len(m.marks); n > 0 && now.Sub(m.marks[n-1].at) < 100*time.Millisecond {
		return
	}
	var current int64
	for _, l := range m.layers {
		current += l.current
	}
	m.marks = append(m.marks, mark{at: now, current: current})
	for len(m.marks) > 2 && now.Sub(m.marks[0].at) > rateWindow {
		m.marks = m.marks[1:]
	}
}

// pull is the progress. Total is 0 until the size of every layer is known: a part would look nearly done.
func (m *meter) pull(now time.Time) session.Pull {
	p := session.Pull{Layers: len(m.layers)}
	sized := len(m.layers) > 0
	for _, l := range m.layers {
		p.Current += gpu.Bytes(l.current)
		p.Total += gpu.Bytes(l.total)
		sized = sized && l.sized
		if l.done {
			p.LayersDone++
		}
	}
	if !sized {
		p.Total = 0
	}
	p.Current = max(p.Current, m.last.Current)
	p.Total = max(p.Total, m.last.Total)
	if p.Total > 0 {
		p.Total = max(p.Total, p.Current)
	}
	if len(m.marks) > 0 {
		first := m.marks[0]
		if span := now.Sub(first.at); span > 0 {
			p.Rate = gpu.Bytes(max(float64(int64(p.Current)-first.current)/span.Seconds(), 0))
		}
	}
	m.last = p
	return p
}

// helperTime is how long a credential helper may take; some ask a person.
const helperTime = 30 * time.Second

// hubServer is the name of Docker Hub among logins.
const hubServer = "https://index.docker.io/v1/"

func serverOf(domain string) string {
	if domain == session.DockerHub {
		return hubServer
	}
	return domain
}

// loginHeader is the login of `docker login` for a registry, encoded for the daemon; "" if there is none in dir.
func loginHeader(ctx context.Context, dir, domain string) (string, error) {
	kept, err := config.Load(dir)
	if err != nil {
		return "", session.WrapError(err, session.CodePullForbidden,
			"Docker's configuration "+kept.Filename+" cannot be read.", "Mend it, or remove it and log in again.")
	}
	server := serverOf(domain)
	login, err := findLogin(ctx, kept, domain, server)
	login.ServerAddress = ""
	if err != nil || login == (types.AuthConfig{}) {
		return "", err
	}
	return registry.EncodeAuthConfig(registry.AuthConfig{
		Username: login.Username, Password: login.Password, IdentityToken: login.IdentityToken,
		RegistryToken: login.RegistryToken, ServerAddress: server,
	})
}

// findLogin asks the registry's credential helper, if there is one, then the file.
func findLogin(ctx context.Context, kept *configfile.ConfigFile, domain, server string) (types.AuthConfig, error) {
	name := cmp.Or(kept.CredentialHelpers[domain], kept.CredentialHelpers[server], kept.CredentialsStore)
	if name == "" {
		return credentials.NewFileStore(kept).Get(server)
	}
	ctx, cancel := context.WithTimeout(ctx, helperTime)
	defer cancel()
	program := "docker-credential-" + name
	told, err := client.Get(func(args ...string) client.Program {
		return helper{exec.CommandContext(ctx, program, args...)}
	}, server)
	switch {
	case helpers.IsErrCredentialsNotFound(err):
		return credentials.NewFileStore(kept).Get(server)
	case err != nil:
		return types.AuthConfig{}, session.WrapError(err, session.CodePullForbidden,
			"The login for "+server+" could not be read: "+program+" failed.",
			"Try `docker pull` by hand, or log in again.")
	case told.Username == "<token>":
		return types.AuthConfig{IdentityToken: told.Secret}, nil
	}
	return types.AuthConfig{Username: told.Username, Password: told.Secret}, nil
}

// helper is one run of a credential helper. Unlike Docker's own it ends with a context and discards stderr.
type helper struct{ cmd *exec.Cmd }

func (h helper) Input(server io.Reader)  { h.cmd.Stdin = server }
func (h helper) Output() ([]byte, error) { return h.cmd.Output() }
