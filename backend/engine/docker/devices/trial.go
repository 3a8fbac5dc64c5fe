package devices

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/mount"

	"slipway/backend/engine"
	"slipway/backend/engine/docker/daemon"
	"slipway/backend/session"
)

// LabelTrial marks containers that serve one call with their instance. They have no other label, so that none is taken
// for a session.
const LabelTrial = "slipway.trial"

// trialName begins the names of trial containers.
const trialName = "slipway-trial-"

// NewTrialName returns a name for a container with [LabelTrial], which is removed by its name or else swept.
func NewTrialName() string { return trialName + strings.ToLower(rand.Text()[:8]) }

// trial starts a container with devices that ends at once. failed is why the way fails, err any other failure.
func (d *Devices) trial(ctx context.Context, facts *daemon.Facts, way engine.AttachWay,
	ids []string) (failed *session.Error, err error) {
	if err := d.daemon.MakeEmptyImage(ctx); err != nil {
		return d.judge(ctx, err)
	}
	guest, err := d.config.Guest(facts.Info.Arch)
	if err != nil {
		return nil, err
	}
	config := &container.Config{
		Image: session.EmptyImage, User: "0:0", Labels: map[string]string{LabelTrial: d.config.Instance},
		Entrypoint: []string{"/.slipway/guest"}, Cmd: []string{},
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
	}
	host := &container.HostConfig{
		NetworkMode: "none", CapDrop: []string{"ALL"}, LogConfig: container.LogConfig{Type: "none"}, Init: new(bool),
		Mounts: []mount.Mount{{Type: mount.TypeBind, Source: guest, Target: "/.slipway/guest", ReadOnly: true}},
	}
	if len(ids) == 0 {
		ids = anyDevice(facts, way)
	}
	handIn(way, ids, config, host)
	// By name, because the daemon may have made it although the answer was cut off.
	name := NewTrialName()
	defer d.endTrial(ctx, name)
	if _, err := d.daemon.API.ContainerCreate(ctx, config, host, nil, nil, name); err != nil {
		return d.judge(ctx, err)
	}
	return d.judge(ctx, d.daemon.API.ContainerStart(ctx, name, container.StartOptions{}))
}

// judge separates a way that does not work from a daemon that does not answer.
func (d *Devices) judge(ctx context.Context, err error) (*session.Error, error) {
	if err == nil {
		return nil, nil
	}
	if failed := failureOf(err); failed != nil && ctx.Err() == nil {
		return failed, nil
	}
	failed := session.AsError(daemon.Failure(ctx, err), session.CodeEngineInternal)
	if ctx.Err() != nil || failed.Code == session.CodeEngineUnavailable {
		return nil, failed
	}
	return failed, nil
}

// endTrial removes the container of a trial, even after ctx ended.
func (d *Devices) endTrial(ctx context.Context, name string) {
	ctx, cancel := d.daemon.Brief(context.WithoutCancel(ctx))
	defer cancel()
	if err := d.daemon.RemoveContainer(ctx, name); err != nil {
		d.daemon.Log.Warn("the container of a trial stays", "container", name, "error", err)
	}
}

func (d *Devices) SweepTrials(ctx context.Context) error {
	left, err := d.daemon.API.ContainerList(ctx, container.ListOptions{All: true,
		Filters: filters.NewArgs(filters.Arg("label", LabelTrial+"="+d.config.Instance))})
	if err != nil {
		return daemon.Failure(ctx, err)
	}
	for _, c := range left {
		if !slices.ContainsFunc(c.Names, func(name string) bool { return strings.HasPrefix(name, "/"+trialName) }) {
			continue // an image has the label, and no trial of ours runs it
		}
		if err := d.daemon.RemoveContainer(ctx, c.ID); err != nil {
			return err
		}
	}
	return nil
}

// anyDevice names devices to try where none was requested.
func anyDevice(facts *daemon.Facts, way engine.AttachWay) []string {
	if way != engine.AttachCDI {
		return []string{"all"}
	}
	for _, name := range facts.CDI {
		// An index may be another device's tomorrow.
		id := strings.TrimPrefix(name, daemon.CDIKind)
		if strings.HasPrefix(id, "GPU-") || strings.HasPrefix(id, "MIG-") {
			return []string{id}
		}
	}
	if len(facts.CDI) > 0 {
		return []string{strings.TrimPrefix(facts.CDI[0], daemon.CDIKind)}
	}
	return []string{"all"}
}
