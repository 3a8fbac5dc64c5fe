package sshstdio

import (
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"slipway/tunnel"
)

// Host is a destination as on the ssh command line.
type Host struct {
	User string // empty: as in the person's configuration
	Name string // a host name, an address, or an alias of the configuration
	Port int    // 0: as in the person's configuration
}

// Names that ssh accepts and no shell, expansion or option can misread. ssh's own check (CVE-2023-51385) is missing in
// some versions.
var (
	hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9._-]{0,252})$`)
	hostZone = regexp.MustCompile(`^[A-Za-z0-9._-]{0,32}$`)
	userName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._@+\\-]{0,127}$`)
)

// ParseHost reads "host", "user@host", "user@host:port" or "ssh://user@host:port". The host may be an alias of the
// person's configuration; an IPv6 address before a port is in brackets. It refuses what could be read as an option or a
// command, and a password in the address.
func ParseHost(text string) (Host, error) {
	invalid := func(message string) (Host, error) {
		return Host{}, &tunnel.Fault{Code: tunnel.CodeConnectInvalid, Message: message,
			Hint: "Use for example ssh://me@lab.example.org, me@lab or the name of a Host in your ~/.ssh/config."}
	}
	rest, isURL := strings.CutPrefix(strings.TrimSpace(text), "ssh://")
	if isURL {
		rest = strings.TrimSuffix(rest, "/")
	}
	var h Host
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		h.User, rest = rest[:at], rest[at+1:]
		if isURL {
			user, err := url.PathUnescape(h.User)
			if err != nil {
				return invalid("The user name in the address is invalid.")
			}
			h.User = user
		}
		if strings.Contains(h.User, ":") {
			return invalid("Remove the password from the address. Slipway asks for it when needed.")
		}
		if !userName.MatchString(h.User) {
			return invalid("The user name contains invalid characters.")
		}
	}
	name, port, ok := splitPort(rest)
	if !ok {
		return invalid("The port must be a number from 1 to 65535.")
	}
	h.Name, h.Port = name, port
	if !hostName.MatchString(h.Name) && !isIPv6(h.Name) {
		return invalid("The host name is empty or contains invalid characters.")
	}
	return h, nil
}

func isIPv6(name string) bool {
	address, err := netip.ParseAddr(name)
	return err == nil && address.Is6() && hostZone.MatchString(address.Zone())
}

// splitPort splits "name:port" and "[address]:port". ok is false for an invalid port; an invalid name is "".
func splitPort(text string) (name string, port int, ok bool) {
	name, number, hasPort := text, "", false
	if inner, isBracketed := strings.CutPrefix(text, "["); isBracketed {
		address, rest, closed := strings.Cut(inner, "]")
		number, hasPort = strings.CutPrefix(rest, ":")
		if !closed || rest != "" && !hasPort {
			return "", 0, true
		}
		name = address
	} else if strings.Count(text, ":") == 1 { // else a bare IPv6 address
		name, number, hasPort = strings.Cut(text, ":")
	}
	if !hasPort {
		return name, 0, true
	}
	port, err := strconv.Atoi(number)
	if err != nil || port < 1 || port > 65535 || strconv.Itoa(port) != number {
		return "", 0, false
	}
	return name, port, true
}

// String is the host as ParseHost reads it.
func (h Host) String() string {
	out := h.Name
	if h.Port != 0 {
		if strings.Contains(out, ":") {
			out = "[" + out + "]"
		}
		out += ":" + strconv.Itoa(h.Port)
	}
	if h.User != "" {
		out = h.User + "@" + out
	}
	return out
}

// args are the arguments that name the host to ssh, the last of them behind "--".
func (h Host) args() (options []string, destination string) {
	if h.User != "" {
		options = append(options, "-l", h.User)
	}
	if h.Port != 0 {
		options = append(options, "-p", strconv.Itoa(h.Port))
	}
	return options, h.Name
}
