package daemon

import (
	"errors"
	"regexp"
	"strings"
	"syscall"
)

// Reason is what a failure is about where Docker gives it no class of its own: the daemon answers 500, or sends an
// error inside a stream that began well. This file is the only place that looks at such texts.
type Reason int

// The reasons that are told apart.
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

// Wordings say what texts are about, tried in their order.
type Wordings[T any] []Wording[T]

// Wording is a text of Docker's and what it means.
type Wording[T any] struct {
	means T
	text  *regexp.Regexp
}

// When means something where a text has a pattern.
func When[T any](pattern string, means T) Wording[T] {
	return Wording[T]{means: means, text: regexp.MustCompile(pattern)}
}

// Of is what a text is about, the zero value where no wording matches it.
func (w Wordings[T]) Of(text string) (means T) {
	for _, one := range w {
		if one.text.MatchString(text) {
			return one.means
		}
	}
	return means
}

// reasonTexts are of pulls and of calls to a registry. Sources: moby distribution/errors.go and registry/errors.go, the
// registry API's error codes, and Go's net package.
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

// ReasonOf says what a text of Docker's is about.
func ReasonOf(text string, err error) Reason {
	if errors.Is(err, syscall.ENOSPC) {
		return ReasonNoSpace
	}
	return reasonTexts.Of(text)
}

// Text is what the daemon said, without what the client put around it.
func Text(err error) string {
	text := err.Error()
	if _, said, ok := strings.Cut(text, "Error response from daemon: "); ok {
		text = said
	}
	return strings.TrimSpace(text)
}
