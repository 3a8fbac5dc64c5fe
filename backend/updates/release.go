// Package updates asks a release host whether there is a newer version, if its address is set, and says how to upgrade
// this copy. It sends a request that says nothing about the person or the computer, and installs nothing.
package updates

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/mod/semver"

	"slipway/backend/session"
)

// Release is a version that a release host offers.
type Release struct {
	Version string `json:"version"` // as of semver.org, without a v
	Date    string `json:"date"`    // YYYY-MM-DD
	Notes   string `json:"notes"`   // what changed, plain text in Markdown
}

const (
	answerMost  = 256 << 10 // of an answer, in bytes
	versionMost = 64
	patience    = 20 * time.Second // until a host has answered
)

// IsVersion reports whether text is a version as of semver.org.
func IsVersion(text string) bool {
	return len(text) <= versionMost && semver.Canonical("v"+text) == "v"+text
}

// Newer reports whether a version follows another one. Nothing follows a program that has none.
func Newer(version, than string) bool {
	return IsVersion(than) && semver.Compare("v"+version, "v"+than) > 0
}

// Parse reads the release that a host offers. Control characters in its notes are left out.
func Parse(data []byte) (Release, error) {
	var r Release
	if len(data) > answerMost {
		return Release{}, fmt.Errorf("it is longer than %d KiB", answerMost>>10)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return Release{}, fmt.Errorf("it is no JSON of a release: %w", err)
	}
	if !IsVersion(r.Version) {
		return Release{}, fmt.Errorf("%q is no version", session.Clip(r.Version))
	}
	if _, err := time.Parse(time.DateOnly, r.Date); err != nil {
		return Release{}, fmt.Errorf("%q is no date", session.Clip(r.Date))
	}
	r.Notes = session.Printable(r.Notes)
	return r, nil
}

// fetch asks one address, and no other that it may lead to.
func fetch(ctx context.Context, transport http.RoundTripper, address string) (Release, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return Release{}, unavailable(err)
	}
	request.Header.Set("User-Agent", "Slipway")
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	response, err := client.Do(request)
	if err != nil {
		return Release{}, unavailable(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return Release{}, wrong(fmt.Errorf("it answers %d", response.StatusCode))
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, answerMost+1))
	if err != nil {
		return Release{}, unavailable(err)
	}
	release, err := Parse(data)
	if err != nil {
		return Release{}, wrong(err)
	}
	return release, nil
}

func unavailable(err error) error {
	said := session.Say("updateUnavailable")
	return &session.Error{Code: session.CodeOperationFailed, Message: said.English(), Said: []session.Phrase{said},
		Err: err}
}

func wrong(err error) error {
	said := session.Say("updateInvalid", session.Fill("why", err.Error()))
	return &session.Error{Code: session.CodeServerAnswer, Message: said.English(), Said: []session.Phrase{said}}
}
