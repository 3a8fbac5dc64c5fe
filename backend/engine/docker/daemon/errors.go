package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"syscall"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/client"

	"slipway/backend/session"
)

// errSilent is the cause of a context that ended because the daemon did not answer in time.
var errSilent = errors.New("the daemon did not answer in time")

// Failure makes a [session.Error] of err by its class, else by [ReasonOf]. A [session.Error] stays as it is.
func Failure(ctx context.Context, err error) error {
	switch _, known := errors.AsType[*session.Error](err); {
	case err == nil:
		return nil
	case known:
		return err
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), errSilent):
		return Ended(ctx, err)
	case Silent(ctx, err):
		return Unavailable(err)
	}
	text := Text(err)
	e := session.WrapError(err, session.CodeEngineInternal, "Docker reports: "+Sentence(text), "")
	switch reason := ReasonOf(text, err); {
	case reason == ReasonNoSpace:
		e.Code = session.CodeDiskFull
		e.Message = "The disk that Docker keeps its data on is full."
		e.Hint = "Free space there, for example with slipway image prune."
	case errdefs.IsInvalidArgument(err), errdefs.IsUnauthorized(err), errdefs.IsPermissionDenied(err):
		e.Code = session.CodeEngineInvalid
	case IsConflict(err):
		e.Code = session.CodeEngineConflict
	}
	return e
}

// ContainerFailure is [Failure] for a call about one container, which may be gone: engine_read_not-found.
func ContainerFailure(ctx context.Context, id string, err error) error {
	err = Failure(ctx, err)
	if errdefs.IsNotFound(err) && session.CodeOf(err) != session.CodeNoContainer {
		return session.WrapError(err, session.CodeNoContainer,
			"The container "+ShortID(id)+" does not exist any more.", "")
	}
	return err
}

// Ended is the error of a call whose ctx ended. The context's error stays in the chain.
func Ended(ctx context.Context, err error) error {
	code, message := session.CodeOperationCancelled, "It was cancelled."
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		code, message = session.CodeEngineTimeout, "Docker took longer than allowed."
	}
	cause := ctx.Err()
	if !errors.Is(err, cause) {
		cause = fmt.Errorf("%w: %w", cause, err)
	}
	return session.WrapError(cause, code, message, "")
}

// Silent reports whether the daemon was not reached or closed the connection.
func Silent(ctx context.Context, err error) bool {
	_, network := errors.AsType[net.Error](err)
	return network || client.IsErrConnectionFailed(err) || errdefs.IsUnavailable(err) ||
		errors.Is(context.Cause(ctx), errSilent) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// Unavailable returns engine_connect_unavailable, with a remedy if the user lacks the permission.
func Unavailable(err error) error {
	e := session.WrapError(err, session.CodeEngineUnavailable, "The Docker daemon does not answer.",
		"Start Docker, for example with `sudo systemctl start docker`, and check DOCKER_HOST.")
	if errors.Is(err, os.ErrPermission) {
		e.Message = "This user may not talk to the Docker daemon."
		e.Hint = "Add the user to the group docker with `sudo usermod -aG docker $USER` and log in again."
	}
	return e
}

// FileFailure is the error of writing Slipway's own files.
func FileFailure(what string, err error) error {
	e := session.WrapError(err, session.CodeEngineInternal, "Slipway could not write "+what+".", "")
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		e.Code = session.CodeDiskFull
		e.Message = "The disk that Slipway keeps its data on is full."
		e.Hint = "Free space there and try again."
	case errors.Is(err, os.ErrPermission):
		e.Code = session.CodeEngineInvalid
		e.Hint = "Check who owns Slipway's data folder."
	}
	return e
}

// Sentence adds a full stop to text.
func Sentence(text string) string {
	return cmp.Or(strings.TrimRight(text, " .\n"), "no reason") + "."
}

// IsConflict reports whether a name is taken or something is in use. Podman answers 500 for a name.
func IsConflict(err error) bool {
	return errdefs.IsConflict(err) || errdefs.IsAlreadyExists(err) ||
		err != nil && ReasonOf(Text(err), err) == ReasonTaken
}

// ShortID is an id as Docker shows it.
func ShortID(id string) string {
	return id[:min(len(id), 12)]
}

// IsGone reports whether err says that a container does not exist.
func IsGone(err error) bool {
	return session.CodeOf(err) == session.CodeNoContainer
}

// Reason is what a failure is about where Docker answers 500 or sends an error inside a stream.
type Reason int

// The reasons.
const (
	ReasonUnknown Reason = iota
	ReasonNoSpace
	ReasonForbidden     // the registry wants other credentials
	ReasonNoManifest    // the registry has no such image
	ReasonUnreachable   // the registry does not answer
	ReasonRateLimited   // the registry has had enough of us
	ReasonWrongPlatform // the image is for another machine
	ReasonNoAddresses   // every address pool of the daemon is given away
	ReasonTaken         // another container or network has the name
	ReasonRemoved       // another call has just removed the image, or what was left of one below it
	// ReasonNoBridgeFilter says that the kernel does not filter what goes through a bridge.
	ReasonNoBridgeFilter
)

// Wordings are tried in order.
type Wordings[T any] []Wording[T]

// Wording is a pattern of Docker's texts and what it means.
type Wording[T any] struct {
	means T
	text  *regexp.Regexp
}

// When returns a wording: texts that match pattern have the meaning means.
func When[T any](pattern string, means T) Wording[T] {
	return Wording[T]{means: means, text: regexp.MustCompile(pattern)}
}

// Of returns what a text means, the zero value where no wording matches.
func (w Wordings[T]) Of(text string) (means T) {
	for _, one := range w {
		if one.text.MatchString(text) {
			return one.means
		}
	}
	return means
}

// reasonTexts follow moby's distribution and registry/errors.go, the registry API's error codes, and Go's net.
var reasonTexts = Wordings[Reason]{
	When(`(?i)no space left on device|disk quota exceeded`, ReasonNoSpace),
	When(`(?i)non-overlapping IPv4 address pool|predefined address pools have been fully subnetted`, ReasonNoAddresses),
	When(`name ".*" is (already )?in use`, ReasonTaken), // Podman's 500
	When(`unrecognized image ID`, ReasonRemoved),
	When(`cannot restrict inter-container communication`, ReasonNoBridgeFilter),
	When(`(?i)toomanyrequests|too many requests|rate limit`, ReasonRateLimited),
	When(`(?i)no matching manifest for|exec format error|does not match the (specified|detected) (host )?platform|`+
		`image operating system .* cannot be used`, ReasonWrongPlatform),
	When(`(?i)\bunauthorized\b|no basic auth credentials|authentication required|incorrect username or password|`+
		`\b(401|403)\b|\bforbidden\b`, ReasonForbidden),
	When(`(?i)manifest unknown|manifest for .* not found|name unknown|repository .* not found|may require 'docker `+
		`login'|\bnot found\b`, ReasonNoManifest),
	When(`(?i)dial tcp|no such host|connection re(fused|set)|i/o timeout|timeout|deadline exceeded|TLS handshake|`+
		`x509|server gave HTTP response|network is unreachable|unexpected EOF|\bEOF$|temporary failure|server `+
		`misbehaving|\b50[0234]\b|context canceled`, ReasonUnreachable),
}

// ReasonOf returns the reason of an error with a text of Docker's.
func ReasonOf(text string, err error) Reason {
	if errors.Is(err, syscall.ENOSPC) {
		return ReasonNoSpace
	}
	return reasonTexts.Of(text)
}

// Text is what the daemon said, without the client's prefix.
func Text(err error) string {
	text := err.Error()
	if _, said, ok := strings.Cut(text, "Error response from daemon: "); ok {
		text = said
	}
	return strings.TrimSpace(text)
}
