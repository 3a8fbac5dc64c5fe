package router

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const servicesPath = "/services/"

// target is what a request asks of a replica.
type target struct {
	url         url.URL
	openAI      bool // it is under /v1
	completions bool // its stream may report its usage
	json        bool // its body is JSON
	webSocket   bool // it asks to switch to that protocol, the only one in which no other request can follow
}

func sameTarget(request *http.Request) target {
	t := targetAt(request, request.URL.Path, request.URL.RawPath)
	t.json = true
	return t
}

// namedTarget returns the name of the service, and the target without it.
func namedTarget(request *http.Request) (string, target) {
	name, path, _ := strings.Cut(strings.TrimPrefix(request.URL.Path, servicesPath), "/")
	raw := strings.TrimPrefix(request.URL.RawPath, servicesPath+name)
	return name, targetAt(request, "/"+path, raw)
}

func targetAt(request *http.Request, path, raw string) target {
	t := target{url: url.URL{Path: path, RawPath: raw, RawQuery: request.URL.RawQuery}}
	t.openAI = strings.HasPrefix(path, "/v1/")
	post := request.Method == http.MethodPost
	t.completions = post && (path == "/v1/chat/completions" || path == "/v1/completions")
	t.json = post && strings.Contains(request.Header.Get("Content-Type"), "json") &&
		request.Header.Get("Content-Encoding") == ""
	if slices.ContainsFunc(listed(request.Header, "Connection"), func(option string) bool {
		return strings.EqualFold(option, "Upgrade")
	}) {
		t.webSocket = strings.EqualFold(request.Header.Get("Upgrade"), "websocket")
	}
	return t
}

// listed are the comma-separated values of a header.
func listed(h http.Header, name string) (values []string) {
	for _, line := range h.Values(name) {
		for value := range strings.SplitSeq(line, ",") {
			values = append(values, strings.TrimSpace(value))
		}
	}
	return values
}

// hops are the headers that concern one connection.
var hops = []string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te",
	"Trailer", "Transfer-Encoding", "Upgrade"}

func removeHops(h http.Header) {
	for _, name := range listed(h, "Connection") {
		h.Del(name)
	}
	for _, name := range hops {
		h.Del(name)
	}
}

// outgoing is the request that goes to a replica, on a connection of its own if own is set. It has neither the token
// nor cookies: browsers send those of all servers of a host, so they may be a login to another one.
func (c *call) outgoing(one *replica, own bool) *http.Request {
	header := c.request.Header.Clone()
	removeHops(header)
	for _, name := range []string{"Authorization", "X-Api-Key", "Cookie", "Expect"} {
		header.Del(name)
	}
	if c.target.openAI {
		header.Del("Accept-Encoding") // the usage is read in the answer
	}
	if _, ok := header["User-Agent"]; !ok {
		header["User-Agent"] = []string{""} // else net/http adds its own
	}
	out := &http.Request{Method: c.request.Method, URL: &c.target.url, Header: header, Close: own,
		Host: fmt.Sprintf("localhost:%d", one.port)}
	if c.target.webSocket {
		out.Close = false
		header.Set("Connection", "Upgrade")
		header.Set("Upgrade", "websocket")
	}
	c.body.attach(out)
	return out
}

func namedConversation(id, token string) conversation {
	return sha256.Sum256([]byte(token + "\x00session\x00" + id))
}
