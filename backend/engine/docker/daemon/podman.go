package daemon

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
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

// podmanRootless asks Podman whether a person runs it, which Docker's client does not read.
func (d *Daemon) podmanRootless(ctx context.Context) (rootless bool, err error) {
	var said struct{ Rootless bool }
	err = d.askPodman(ctx, http.MethodGet, "/info", nil, &said)
	return said.Rootless, err
}

// MakePodmanNetwork makes a network that is isolated from other private networks, which Docker's API does not ask of
// Podman.
func (d *Daemon) MakePodmanNetwork(ctx context.Context, name string, labels map[string]string) error {
	type network struct {
		Name    string            `json:"name"`
		Driver  string            `json:"driver"`
		Labels  map[string]string `json:"labels"`
		Options map[string]string `json:"options"`
		DNS     bool              `json:"dns_enabled"`
	}
	return d.askPodman(ctx, http.MethodPost, "/v4.0.0/libpod/networks/create", network{Name: name, Driver: "bridge",
		Labels: labels, Options: map[string]string{"isolate": "true"}, DNS: true}, nil)
}

// askPodman makes a request that Docker's client does not know. reply may be nil.
func (d *Daemon) askPodman(ctx context.Context, method, path string, body, reply any) error {
	ctx, cancel := d.Brief(ctx)
	defer cancel()
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://podman"+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	said, err := d.API.HTTPClient().Do(req)
	if err != nil {
		return err
	}
	defer said.Body.Close() //nolint:errcheck // only read
	if said.StatusCode >= http.StatusBadRequest {
		var failed struct{ Message string }
		json.NewDecoder(said.Body).Decode(&failed) //nolint:errcheck // the status counts
		if said.StatusCode == http.StatusConflict {
			return errdefs.ErrConflict.WithMessage(failed.Message)
		}
		return errors.New(cmp.Or(failed.Message, said.Status))
	}
	if reply == nil {
		return nil
	}
	return json.NewDecoder(said.Body).Decode(reply)
}
