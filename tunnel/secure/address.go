package secure

import (
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"slipway/tunnel"
)

// DefaultPort is where an agent listens unless told otherwise.
const DefaultPort = 7442

// webPath is where the listener's WebSocket is.
const webPath = "/slipway/1"

// Address is where a listener is found.
type Address struct {
	Host string
	Port int
	Web  bool   // by WebSocket
	Path string // of the WebSocket, where a proxy in front of the listener wants another
}

// ParseAddress reads "host", "host:port", "tls://host:port" or
// "wss://host:port/path". A wss address without a port means 443.
func ParseAddress(text string) (Address, error) {
	invalid := tunnel.NewFault(tunnel.CodeConnectInvalid, "The address of the agent is invalid.",
		"Use for example lab.example.org:7442, or wss://lab.example.org where only HTTPS passes.", nil)
	text = strings.TrimSpace(text)
	if !strings.Contains(text, "://") {
		if strings.Count(text, ":") > 1 && !strings.HasPrefix(text, "[") { // an IPv6 address
			text = "[" + text + "]"
		}
		text = "tls://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !validHost(u.Hostname()) ||
		!webPaths.MatchString(u.Path) {
		return Address{}, invalid
	}
	a := Address{Host: u.Hostname(), Port: DefaultPort}
	switch u.Scheme {
	case "tls":
		if u.Path != "" && u.Path != "/" {
			return Address{}, invalid
		}
	case "wss":
		a.Web, a.Port, a.Path = true, 443, u.Path
		if a.Path == "" || a.Path == "/" {
			a.Path = webPath
		}
	default:
		return Address{}, invalid
	}
	if port := u.Port(); port != "" {
		a.Port, err = strconv.Atoi(port)
		if err != nil || a.Port < 1 || a.Port > 65535 {
			return Address{}, invalid
		}
	}
	return a, nil
}

var (
	hostNames = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,252}$`)
	webPaths  = regexp.MustCompile(`^(/[A-Za-z0-9._~/-]{0,200})?$`)
)

func validHost(name string) bool {
	if strings.Contains(name, ":") {
		_, err := netip.ParseAddr(name)
		return err == nil
	}
	return hostNames.MatchString(name)
}

// hostPort is the address for net.Dial.
func (a Address) hostPort() string { return net.JoinHostPort(a.Host, strconv.Itoa(a.Port)) }

// String is the address as ParseAddress reads it.
func (a Address) String() string {
	if !a.Web {
		return strings.ReplaceAll(a.hostPort(), "%", "%25") // of a zone
	}
	return a.url().String()
}

func (a Address) url() *url.URL {
	return &url.URL{Scheme: "wss", Host: a.hostPort(), Path: a.Path}
}
