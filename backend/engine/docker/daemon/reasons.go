package daemon

import (
	"errors"
	"regexp"
	"strings"
	"syscall"
)

// Reason is what a failure is about where Docker answers 500 or sends an error inside a stream. Only this file looks at
// such texts.
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

// reasonTexts follow moby's distribution/errors.go and registry/errors.go, the registry API's error codes, and Go's
// net.
var reasonTexts = Wordings[Reason]{
	When(`(?i)no space left on device|disk quota exceeded`, ReasonNoSpace),
	When(`(?i)non-overlapping IPv4 address pool|predefined address pools have been fully subnetted`, ReasonNoAddresses),
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
