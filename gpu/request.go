package gpu

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Request is what a session asks for: one of Shares, Devices, Profile and Memory. The zero Request asks for nothing.
type Request struct {
	Shares  Share  `json:"shares,omitempty"`  // a share of devices, in whole quanta
	Devices int    `json:"devices,omitempty"` // whole devices
	Profile string `json:"profile,omitempty"` // MIG instances of this profile
	Count   int    `json:"count,omitempty"`   // how many instances of Profile; 0 means 1
	Memory  Bytes  `json:"memory,omitempty"`  // memory on one device
}

// IsZero says whether r asks for nothing.
func (r Request) IsZero() bool { return r == Request{} }

// Validate returns an [*Error] with code [CodeRequestInvalid] if r is wrong. The zero request is valid.
func (r Request) Validate() error {
	modes := 0
	for _, set := range []bool{r.Shares != 0, r.Devices != 0, r.Profile != "", r.Memory != 0} {
		if set {
			modes++
		}
	}
	switch {
	case modes > 1:
		return invalid("Ask for only one of shares, whole devices, MIG instances and memory.")
	case r.Shares < 0 || r.Devices < 0 || r.Count < 0 || r.Memory < 0:
		return invalid("A request for devices cannot be negative.")
	case r.Shares > maxShare || r.Devices > int(maxShare/WholeDevice) || r.Count > int(maxShare):
		return invalid("A request for devices cannot be larger than 1024 devices.")
	case r.Count != 0 && r.Profile == "":
		return invalid("A count needs a MIG profile.")
	}
	return nil
}

// ParseRequest reads a text: "0.5" or "1.5" are shares, "2" or "2.0" whole devices, "mig:1g.10gb" is one instance and
// "mig:1g.10gb:2" two, "vram:12g" is memory on one device; "", "0" and "none" ask for nothing. A failure is an [*Error]
// with code [CodeRequestInvalid].
func ParseRequest(text string) (Request, error) {
	s := strings.TrimSpace(text)
	kind, rest, named := strings.Cut(s, ":")
	switch {
	case s == "" || s == "0" || s == "none":
		return Request{}, nil
	case named && kind == "mig":
		return parseProfile(rest)
	case named && kind == "vram":
		amount, err := ParseBytes(rest)
		if err != nil || amount == 0 {
			return Request{}, invalid("%q is not an amount of device memory: write for example vram:12g.",
				text)
		}
		return Request{Memory: amount}, nil
	}
	share, err := ParseShare(s)
	switch {
	case err != nil || share == 0:
		return Request{}, invalid("%q does not name devices: write 0.5, 2, mig:1g.10gb or vram:12g.", text)
	case share%WholeDevice == 0:
		return Request{Devices: int(share / WholeDevice)}, nil
	}
	return Request{Shares: share}, nil
}

func parseProfile(text string) (Request, error) {
	profile, count, counted := strings.Cut(text, ":")
	n := 1
	if counted {
		var err error
		if n, err = strconv.Atoi(count); err != nil || n < 1 {
			return Request{}, invalid("%q is not a number of MIG instances.", count)
		}
	}
	if profile == "" {
		return Request{}, invalid("A MIG request names a profile: write for example mig:1g.10gb.")
	}
	r := Request{Profile: profile, Count: n}
	return r, r.Validate()
}

// UnmarshalText reads a text for [ParseRequest].
func (r *Request) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRequest(string(text))
	return err
}

// UnmarshalJSON accepts the fields of a request or a text for [ParseRequest].
func (r *Request) UnmarshalJSON(data []byte) error {
	if quoted, err := readQuoted(data, r, ParseRequest); quoted {
		return err
	}
	type fields Request
	return json.Unmarshal(data, (*fields)(r))
}

// String writes r as [ParseRequest] reads it; the zero request is "none".
func (r Request) String() string {
	switch {
	case r.Devices > 0:
		return strconv.Itoa(r.Devices)
	case r.Profile != "" && r.instances() > 1:
		return "mig:" + r.Profile + ":" + strconv.Itoa(r.instances())
	case r.Profile != "":
		return "mig:" + r.Profile
	case r.Memory > 0:
		return "vram:" + r.Memory.Exact()
	case r.Shares > 0:
		return r.Shares.String()
	}
	return "none"
}

func (r Request) instances() int {
	if r.Profile == "" {
		return 0
	}
	return max(1, r.Count)
}

// Grant is what a session was allocated of one device. It is stored with the session, and the [Ledger] is rebuilt from
// all grants after a restart. Memory is the limit that the guard and the driver enforce; 0 means that the device does
// not report its memory.
type Grant struct {
	Device   UUID  `json:"device"`
	Instance UUID  `json:"instance,omitempty"` // set when a MIG instance is granted
	Share    Share `json:"share"`              // of the device; an instance's part for MIG
	Memory   Bytes `json:"memory"`
	Whole    bool  `json:"whole,omitempty"` // the device is not shared
}

// Proposal is what a [Ledger] would allocate for a request. Rounded is set if that is not what was asked for; the
// caller decides whether to take it.
type Proposal struct {
	Grants  []Grant   `json:"grants"`
	Rounded *Rounding `json:"rounded,omitempty"`
}

// Rounding is how a proposal differs from its request. Less means that the session would get less than it asked for,
// which must not be taken silently; a request for memory is only ever rounded up, to the smallest share that holds it.
type Rounding struct {
	Asked Share  `json:"asked"` // 0 when memory was asked for
	Given Share  `json:"given"`
	Less  bool   `json:"less"`
	Why   string `json:"why"` // one sentence
}

// Error is a failure that a person can act on. Code is one of those below, which stay in the program; Message is one
// sentence and Hint says what to do next.
type Error struct {
	Code    string
	Message string
	Hint    string
}

// The codes of this package. Unavailable means that waiting may help; impossible that this machine can never grant it;
// fragmented that enough is free in sum but not on few enough devices; quantum that the request is below the smallest
// share; conflict that a grant is not free any more.
const (
	CodeRequestInvalid     = "invalid request"
	CodeRequestQuantum     = "below the quantum"
	CodeGrantUnavailable   = "not free now"
	CodeGrantImpossible    = "never here"
	CodeGrantFragmented    = "fragmented"
	CodeHoldConflict       = "held"
	CodeHoldInvalid        = "invalid grant"
	CodeSourceUnavailable  = "no answer"
	CodeSourceNotSupported = "not supported"
)

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Waits reports whether err is a refusal that waiting may end.
func Waits(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && (e.Code == CodeGrantUnavailable || e.Code == CodeGrantFragmented)
}

func failure(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

func invalid(format string, args ...any) *Error { return failure(CodeRequestInvalid, format, args...) }
