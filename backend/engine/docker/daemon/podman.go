package daemon

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/versions"

	"slipway/backend/session"
)

const (
	podmanComponent = "Podman Engine" // among the components of Podman's version
	oldestPodman    = "4.3"
)

// isPodman reports whether an engine is Podman.
func isPodman(v types.Version) bool {
	return slices.ContainsFunc(v.Components, func(c types.ComponentVersion) bool { return c.Name == podmanComponent })
}

// asPodman corrects what Podman reports as Docker would. Its id is another one at each call, its containers need no
// daemon, and it changes what an image starts when it commits.
func (f *Facts) asPodman(root string, rootless bool, now time.Time) {
	f.ID, f.Podman, f.Rootless = "podman:"+root, true, rootless
	f.Info.Name, f.Info.LiveRestore = "podman", true
	f.Info.Lacks = []session.Feature{session.FeatureNVIDIA, session.FeatureCommit}
	for i := range f.Info.Warnings {
		f.Info.Warnings[i].Title = strings.Replace(f.Info.Warnings[i].Title, "Docker", "Podman", 1)
	}
	if versions.LessThan(f.Info.Version, oldestPodman) {
		f.Info.Warnings = append(f.Info.Warnings, session.Warning{Code: session.CodeTooOld, Title: "Podman is too old",
			Text: "Podman " + f.Info.Version + " is older than " + oldestPodman + "; update it.", At: now})
	}
}

// rootless reports whether a person runs Podman, which Docker's client does not read. It is asked once, because Podman
// counts containers to answer.
func (d *Daemon) rootless(ctx context.Context) (rootless bool, err error) {
	if facts := d.said(); facts != nil && facts.Podman {
		return facts.Rootless, nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://podman/info", http.NoBody)
	if err != nil {
		return false, err
	}
	reply, err := d.API.HTTPClient().Do(req)
	if err != nil {
		return false, err
	}
	defer reply.Body.Close()
	var said struct{ Rootless bool }
	err = json.NewDecoder(reply.Body).Decode(&said)
	return said.Rootless, err
}
