package images

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/build"
	"google.golang.org/protobuf/encoding/protowire"

	"slipway/backend/engine"
	"slipway/backend/engine/docker/daemon"
	"slipway/backend/session"
)

// Build implements [engine.Builder] with the BuildKit that is part of the daemon.
func (s *Store) Build(ctx context.Context, b engine.Build, progress func(session.Build)) (session.Image, error) {
	facts, err := s.daemon.Facts(ctx)
	if err != nil {
		return session.Image{}, err
	}
	if facts.Podman {
		return session.Image{}, engine.CannotBuild()
	}
	options := build.ImageBuildOptions{Version: build.BuilderBuildKit, Tags: []string{b.Ref}, Dockerfile: b.Dockerfile,
		Target: b.Target, BuildArgs: map[string]*string{}, Labels: b.Labels, Remove: true, ForceRemove: true}
	for name, value := range b.Args {
		options.BuildArgs[name] = &value
	}
	if b.Proxy != nil {
		if facts.Rootless || !facts.Here {
			return session.Image{}, session.NewError(session.CodeEngineUnsupported,
				"This machine's Docker has a network of its own, so it cannot build through another computer.",
				"Build the image on your computer, and send it.")
		}
		useProxy(&options, b.Proxy)
		progress = hiding(b.Proxy, progress)
		defer s.forgetProxy(context.WithoutCancel(ctx), b.Proxy)
	}
	id, end, err := s.openSession(ctx, b)
	if err != nil {
		return session.Image{}, err
	}
	defer end()
	content, to := io.Pipe()
	go func() { to.CloseWithError(b.Context(ctx, to)) }()
	defer content.Close()
	options.BuildID, options.SessionID = id, id
	said, err := s.daemon.API.ImageBuild(ctx, content, options)
	if sent, ok := errors.AsType[*url.Error](err); ok {
		err = sent.Err // without the address of the request, which has the arguments of the build
	}
	if err != nil {
		return session.Image{}, daemon.Failure(ctx, err)
	}
	defer said.Body.Close()
	// Closing the connection ends the build, too, but not at once in every version.
	stop := context.AfterFunc(ctx, func() { s.cancelBuild(context.WithoutCancel(ctx), id) })
	defer stop()
	if err := followBuild(said.Body, progress); err != nil {
		return session.Image{}, buildFailure(ctx, err)
	}
	return s.Image(ctx, b.Ref)
}

// useProxy makes the steps use a proxy on the loopback of the daemon's machine. BuildKit knows these arguments, and
// keeps them out of images and out of what decides whether a step is repeated.
func useProxy(options *build.ImageBuildOptions, proxy *url.URL) {
	options.NetworkMode = "host"
	address, near := proxy.String(), "localhost,127.0.0.1,::1"
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		options.BuildArgs[name] = &address
	}
	options.BuildArgs["NO_PROXY"], options.BuildArgs["no_proxy"] = &near, &near
}

// hiding returns progress without the password of a proxy, which a step may print.
func hiding(proxy *url.URL, progress func(session.Build)) func(session.Build) {
	password, _ := proxy.User.Password()
	header := base64.StdEncoding.EncodeToString([]byte(proxy.User.String()))
	hide := strings.NewReplacer(password, session.Hidden, header, session.Hidden)
	return func(now session.Build) {
		now.Log = hide.Replace(now.Log)
		progress(now)
	}
}

// forgetProxy deletes the record of a build that used a proxy, since it has the password.
func (s *Store) forgetProxy(ctx context.Context, proxy *url.URL) {
	password, _ := proxy.User.Password()
	if err := s.forget(ctx, password); err != nil {
		s.daemon.Log.Warn("the record of a build could not be deleted", "error", err)
	}
}

func (s *Store) cancelBuild(ctx context.Context, id string) {
	ctx, cancel := s.daemon.Brief(ctx)
	defer cancel()
	if err := s.daemon.API.BuildCancel(ctx, id); err != nil {
		s.daemon.Log.Warn("a build could not be cancelled", "build", id, "error", err)
	}
}

// maxFailure bounds what is repeated of a failure, which names the whole command, in bytes.
const maxFailure = 400

// inside matches what BuildKit says of its own parts before it says what is wrong.
var inside = regexp.MustCompile(`^((failed to solve|failed to create LLB definition|rpc error)[^:]*: ` +
	`|code = \w+ desc = )+`)

// buildFailure is image_build_failed with what the step said, unless the failure is another one of Docker's.
func buildFailure(ctx context.Context, err error) error {
	var said *streamError
	if ctx.Err() != nil || !errors.As(err, &said) || daemon.ReasonOf(said.text, err) == daemon.ReasonNoSpace {
		return daemon.Failure(ctx, err)
	}
	text := inside.ReplaceAllString(said.text, "")
	text = strings.ToValidUTF8(text[:min(len(text), maxFailure)], "")
	return session.Because(session.CodeBuildFailed,
		session.Say("buildFailed", session.Fill("why", daemon.Sentence(text))),
		session.Say("buildFailedHint")).Failure(err)
}

// followBuild reports progress, from this goroutine only, until the stream ends.
func followBuild(stream io.Reader, progress func(session.Build)) error {
	messages, failed, stop := reading(stream)
	defer stop()
	trace := &buildTrace{at: map[string]int{}}
	ticker := time.NewTicker(reportEvery)
	defer ticker.Stop()
	changed := false
	for {
		select {
		case m := <-messages:
			var raw []byte
			if m.ID == "moby.buildkit.trace" && json.Unmarshal(m.Aux, &raw) == nil {
				trace.note(raw)
				changed = true
			}
		case <-ticker.C:
			if changed {
				progress(trace.build())
			}
			changed = false
		case err := <-failed:
			progress(trace.build())
			return err
		}
	}
}

// buildTrace collects what BuildKit's messages of type moby.buildkit.v1.StatusResponse say.
type buildTrace struct {
	steps []session.BuildStep
	at    map[string]int // places of steps, by the digest of their vertex
	log   bytes.Buffer
}

func (t *buildTrace) build() session.Build {
	return session.Build{Steps: slices.Clone(t.steps), Log: strings.ToValidUTF8(t.log.String(), "\uFFFD")}
}

// The numbers of fields in BuildKit's api/services/control/control.proto.
const (
	statusVertexes = 1
	statusLogs     = 3

	vertexDigest    = 1
	vertexName      = 3
	vertexCached    = 4
	vertexStarted   = 5
	vertexCompleted = 6
	vertexError     = 7

	logMessage = 4

	timeSeconds = 1
	timeNanos   = 2
)

func (t *buildTrace) note(raw []byte) {
	_ = eachField(raw, func(number protowire.Number, data []byte, _ uint64) {
		switch number {
		case statusVertexes:
			t.vertex(data)
		case statusLogs:
			_ = eachField(data, func(number protowire.Number, data []byte, _ uint64) {
				if number == logMessage {
					t.print(data)
				}
			})
		}
	})
}

func (t *buildTrace) print(text []byte) {
	t.log.Write(text)
	if excess := t.log.Len() - int(session.MaxBuildLog); excess > 0 {
		t.log.Next(excess)
	}
}

func (t *buildTrace) vertex(raw []byte) {
	var digest, failed string
	step := session.BuildStep{State: session.WorkRunning}
	err := eachField(raw, func(number protowire.Number, data []byte, value uint64) {
		switch number {
		case vertexDigest:
			digest = string(data)
		case vertexName:
			step.Name = session.Clip(strings.ToValidUTF8(string(data), "\uFFFD"))
		case vertexCached:
			step.Cached = value != 0
		case vertexStarted:
			step.StartedAt = timestamp(data)
		case vertexCompleted:
			step.EndedAt, step.State = timestamp(data), session.WorkDone
		case vertexError:
			failed = string(data)
		}
	})
	// What is inside of BuildKit, such as reading the Dockerfile, is of no interest.
	if err != nil || digest == "" || step.StartedAt == nil || strings.HasPrefix(step.Name, "[internal]") {
		return
	}
	switch {
	case failed == "":
	case strings.Contains(failed, "context canceled"):
		step.State = session.WorkCancelled
	default:
		step.State = session.WorkFailed
	}
	at, known := t.at[digest]
	switch {
	case known:
		step.Cached = step.Cached || t.steps[at].Cached
		t.steps[at] = step
	case len(t.steps) < session.MaxBuildSteps:
		t.at[digest] = len(t.steps)
		t.steps = append(t.steps, step)
	}
}

func timestamp(raw []byte) *time.Time {
	var seconds, nanos uint64
	err := eachField(raw, func(number protowire.Number, _ []byte, value uint64) {
		switch number {
		case timeSeconds:
			seconds = value
		case timeNanos:
			nanos = value
		}
	})
	if err != nil {
		return nil
	}
	return new(time.Unix(int64(seconds), int64(nanos)).UTC())
}

// eachField calls fn for each field of a message, with its bytes or its number.
func eachField(raw []byte, fn func(number protowire.Number, data []byte, value uint64)) error {
	for len(raw) > 0 {
		number, kind, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return protowire.ParseError(n)
		}
		raw = raw[n:]
		var data []byte
		var value uint64
		switch kind {
		case protowire.VarintType:
			value, n = protowire.ConsumeVarint(raw)
		case protowire.BytesType:
			data, n = protowire.ConsumeBytes(raw)
		case protowire.Fixed32Type, protowire.Fixed64Type, protowire.StartGroupType, protowire.EndGroupType:
			n = protowire.ConsumeFieldValue(number, kind, raw)
		default:
			return fmt.Errorf("field %d is of type %d", number, kind)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		raw = raw[n:]
		fn(number, data, value)
	}
	return nil
}
