package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/system"
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

// podmanInfo is what Podman says in its own words only.
type podmanInfo struct {
	Host struct {
		Controllers []string `json:"cgroupControllers"` // that whoever runs it may use
		Security    struct {
			Rootless bool `json:"rootless"`
		} `json:"security"`
	} `json:"host"`
}

// limit corrects what a person's Podman says it can limit: it names what the machine can.
func (p podmanInfo) limit(said *system.Info) {
	if !p.Host.Security.Rootless {
		return
	}
	has := func(controller string) bool { return slices.Contains(p.Host.Controllers, controller) }
	said.MemoryLimit = said.MemoryLimit && has("memory")
	said.CPUSet = said.CPUSet && has("cpuset")
	said.PidsLimit = said.PidsLimit && has("pids")
}

// asPodman corrects what Podman reports as Docker would. Its id is another one at each call, its containers need no
// daemon, and it changes what an image starts when it commits.
func (f *Facts) asPodman(root string, own podmanInfo, now time.Time) {
	f.ID, f.Podman, f.podman, f.Rootless = "podman:"+root, true, own, own.Host.Security.Rootless
	f.Info.Name, f.Info.LiveRestore = "podman", true
	f.Info.Lacks = append(f.Info.Lacks, session.FeatureNVIDIA, session.FeatureCommit,
		session.FeatureBuild)
	for i := range f.Info.Warnings {
		f.Info.Warnings[i].Title = strings.Replace(f.Info.Warnings[i].Title, "Docker", "Podman", 1)
	}
	if versions.LessThan(f.Info.Version, oldestPodman) {
		f.Info.Warnings = append(f.Info.Warnings, session.Warning{Code: session.CodeTooOld, Title: "Podman is too old",
			Text: "Podman " + f.Info.Version + " is older than " + oldestPodman + "; update it.", At: now})
	}
}

// podman asks Podman in its own words, once, because it counts containers to answer.
func (d *Daemon) podman(ctx context.Context, version string) (own podmanInfo, err error) {
	if facts := d.said(); facts != nil && facts.Podman {
		return facts.podman, nil
	}
	address := "http://podman/v" + url.PathEscape(version) + "/libpod/info"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return own, err
	}
	reply, err := d.API.HTTPClient().Do(req)
	if err != nil {
		return own, err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return own, errors.New("podman answers " + reply.Status)
	}
	err = json.NewDecoder(reply.Body).Decode(&own)
	return own, err
}
