package hub

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"slipway/backend/session"
)

// Address is where an agent is and how to reach it.
type Address struct {
	Scheme string // ssh, slipway or wss
	Slurm  bool   // of ssh: the host is a login node of Slurm
	User   string // of ssh; empty: from the user's ssh configuration
	Host   string // a name, an address, or an alias of the ssh configuration
	Port   int    // 0: the scheme's default
	Path   string // of wss; empty, or begins with /
}

// The schemes of addresses. No other scheme is dialled.
const (
	SchemeSSH     = "ssh"
	SchemeSlipway = "slipway"
	SchemeWSS     = "wss"
)

// schemeSlurm is how the address of a login node of Slurm begins, which is reached by ssh.
const schemeSlurm = "slurm"

var (
	// hostRule matches nothing that a program could take for an option, a path or a command.
	hostRule = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9._-]{0,251}[A-Za-z0-9_])?$`)
	userRule = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._@+-]{0,63}$`)
	pathRule = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)*/?$`)
)

// ParseAddress parses ssh://user@host:port, slurm://user@host:port, slipway://host:port, wss://host:port/path, or a
// host or user@host, which is reached by ssh. It fails with agent_call_invalid and the field address.
func ParseAddress(text string) (Address, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return Address{}, badAddress("The address is empty.")
	}
	if !strings.Contains(text, "://") {
		text = SchemeSSH + "://" + text
	}
	parsed, err := url.Parse(text)
	if err != nil || parsed.Opaque != "" {
		return Address{}, badAddress(fmt.Sprintf("%q is not an address.", session.Clip(text)))
	}
	address := Address{Scheme: strings.ToLower(parsed.Scheme), Host: parsed.Hostname(), Path: parsed.EscapedPath()}
	if address.Scheme == schemeSlurm {
		address.Scheme, address.Slurm = SchemeSSH, true
	}
	if parsed.User != nil {
		if _, some := parsed.User.Password(); some {
			return Address{}, badAddress("A password does not belong in an address; it is asked for when it is needed.")
		}
		address.User = parsed.User.Username()
	}
	if parsed.RawQuery != "" || parsed.ForceQuery || parsed.Fragment != "" {
		return Address{}, badAddress("An address ends with the host, the port or the path.")
	}
	if port := parsed.Port(); port != "" {
		if address.Port, err = strconv.Atoi(port); err != nil || address.Port < 1 || address.Port > 65535 {
			return Address{}, badAddress(fmt.Sprintf("%s is not a port.", session.Clip(port)))
		}
	}
	if address.Path == "/" {
		address.Path = ""
	}
	return address, address.check()
}

func (a Address) check() error {
	if _, err := netip.ParseAddr(a.Host); err != nil && !hostRule.MatchString(a.Host) {
		return badAddress(fmt.Sprintf("%q is not the name of a host.", session.Clip(a.Host)))
	}
	switch a.Scheme {
	case SchemeSSH:
		if a.User != "" && !userRule.MatchString(a.User) {
			return badAddress(fmt.Sprintf("%q is not the name of a user.", session.Clip(a.User)))
		}
		if a.Path != "" {
			return badAddress("An address of ssh has no path.")
		}
	case SchemeSlipway, SchemeWSS:
		if a.User != "" {
			return badAddress("A device is known by its key; leave the user out.")
		}
		if a.Scheme == SchemeSlipway && a.Path != "" || !pathRule.MatchString(a.Path) {
			return badAddress(fmt.Sprintf("%q is not a path of an agent.", session.Clip(a.Path)))
		}
	default:
		return badAddress(fmt.Sprintf("Slipway does not speak %q.", session.Clip(a.Scheme)))
	}
	return nil
}

func badAddress(message string) error {
	const hint = "Write ssh://user@host:port, slurm://user@host:port, slipway://host:port or wss://host:port/path."
	return wrongField(session.CodeAgentInvalid, "address", session.KindInvalid, message, hint)
}

// wrongField returns an error about one field of a request.
func wrongField(code session.Code, field string, kind session.Kind, message, hint string) error {
	return session.Refused(code, session.FieldError{Field: field, Kind: kind, Message: message, Hint: hint})
}

func wrongOwner(code session.Code, owner string) error {
	return wrongField(code, "owner", session.KindInvalid,
		fmt.Sprintf("%q is not a name for an owner.", session.Clip(owner)), "Use letters and digits.")
}

// SSH is the address for ssh, which does not know what is expected there.
func (a Address) SSH() string {
	a.Slurm = false
	return a.String()
}

// String returns the address in the form that ParseAddress reads.
func (a Address) String() string {
	scheme := a.Scheme
	if a.Slurm {
		scheme = schemeSlurm
	}
	host := a.Host
	if a.Port != 0 {
		host = net.JoinHostPort(a.Host, strconv.Itoa(a.Port))
	} else if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if a.User != "" {
		host = a.User + "@" + host
	}
	return scheme + "://" + host + a.Path
}
