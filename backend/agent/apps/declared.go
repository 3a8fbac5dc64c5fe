package apps

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"slipway/backend/session"
)

// Labels by which an image declares apps.
const (
	// labelApps is a JSON list of declarations. Without a command, the image starts the program itself.
	labelApps = "slipway.apps"
	// labelServices is the list of Backend.AI's images: name:protocol:port, …
	labelServices = "ai.backend.service-ports"
)

const (
	maxDeclared = 20       // apps
	maxLabel    = 64 << 10 // bytes of a label
	maxAppTitle = 64       // bytes
	maxAppPath  = 512      // bytes
)

type declaration struct {
	ID      string   `json:"id"`
	Title   string   `json:"title"`
	Command []string `json:"command"`
	Port    int      `json:"port"`
	Ready   string   `json:"ready"`
	Path    string   `json:"path"`
}

// declaredIn returns the apps that the image of a session declares. It reads them once for the life of the session.
func (a *Apps) declaredIn(ctx context.Context, s session.Session) []program {
	a.mu.Lock()
	list, read := a.declared[s.ID]
	a.mu.Unlock()
	if read {
		return list
	}
	image, err := a.config.Engine.Image(ctx, s.Spec.Image)
	if err != nil && session.CodeOf(err) != session.CodeNoImage {
		return nil // read again the next time
	}
	list = declaredBy(image.Labels)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.declared[s.ID] = list
	return list
}

// declaredBy reads the labels of an image. It skips entries that are invalid or repeat an earlier one.
func declaredBy(labels map[string]string) []program {
	var found []program
	add := func(p program) {
		if usable(p) && len(found) < maxDeclared &&
			!slices.ContainsFunc(found, func(other program) bool { return other.id == p.id || other.port == p.port }) {
			found = append(found, p)
		}
	}
	if len(labels[labelApps]) > maxLabel || len(labels[labelServices]) > maxLabel {
		return nil
	}
	var list []declaration
	if json.Unmarshal([]byte(labels[labelApps]), &list) == nil {
		for _, d := range list {
			add(d.program())
		}
	}
	for _, entry := range splitServices(labels[labelServices]) {
		add(entry)
	}
	return found
}

func (d declaration) program() program {
	p := program{id: d.ID, title: cmp.Or(strings.TrimSpace(d.Title), d.ID), port: d.Port, ready: d.Ready, path: d.Path}
	if len(d.Command) > 0 {
		p.command = d.Command[0]
		p.args = func(setting) []string { return d.Command[1:] }
	}
	return p
}

var serviceEntry = regexp.MustCompile(`([\w.-]+):(\w+):\[?(\d+)`)

// splitServices returns the entries of labelServices. A list of ports in brackets counts by its first.
func splitServices(text string) (found []program) {
	for _, match := range serviceEntry.FindAllStringSubmatch(text, -1) {
		port, err := strconv.Atoi(match[3])
		if err != nil || match[2] == "pty" {
			continue
		}
		p := program{id: strings.ToLower(strings.NewReplacer("_", "-", ".", "-").Replace(match[1])), title: match[1],
			port: port}
		if match[2] != "http" && match[2] != "preopen" {
			p.kind = "tcp"
		}
		found = append(found, p)
	}
	return found
}

var appID = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// usable reports whether an image may declare p: an id that fits into a host name and is not Slipway's, a port that is
// not Slipway's, a printable title, and paths that fit into a URL.
func usable(p program) bool {
	known := slices.ContainsFunc(programs, func(own program) bool { return own.id == p.id })
	return !known && len(p.id) <= 32 && appID.MatchString(p.id) && !strings.HasPrefix(p.id, portPrefix) &&
		p.port >= 1024 && p.port <= 65535 && !session.ReservedPort(p.port) &&
		len(p.title) <= maxAppTitle && session.IsPrintable(p.title) && addressable(p.path) && addressable(p.ready)
}

// addressable reports whether text may be the path of a URL as it is.
func addressable(text string) bool {
	return len(text) <= maxAppPath && !strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"<>\\`, r)
	})
}
