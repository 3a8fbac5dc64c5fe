package docker

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"

	"slipway/backend/engine"
	"slipway/backend/engine/docker/daemon"
	"slipway/backend/engine/docker/devices"
	"slipway/backend/engine/docker/images"
	"slipway/backend/engine/docker/networks"
	"slipway/backend/session"
)

// capabilities is what the guest keeps to set up the container and to become its user: it reads its own configuration,
// makes the home, changes user and drops the rest. The person's processes get none of it, except those of an
// administrator session: see the guest.
var capabilities = []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETPCAP", "SETUID"}

// Create makes a container without starting it. It also fails with engine_call_invalid where a directory does not
// exist, and with engine_create_unsupported for an image of another architecture, and for directories and
// administrators where a daemon on another machine cannot have them.
func (e *Engine) Create(ctx context.Context, c engine.Container) (string, error) {
	if err := validate(c); err != nil {
		return "", err
	}
	facts, err := e.daemon.Facts(ctx)
	if err != nil {
		return "", err
	}
	if err := e.checkRemote(c, facts); err != nil {
		return "", err
	}
	image, arch, err := e.platform(ctx, c.Image, facts)
	if err != nil {
		return "", err
	}
	if err := checkMounts(c.Mounts); err != nil {
		return "", err
	}
	if err := e.CheckNetwork(ctx, c.Network); err != nil {
		return "", err
	}
	if c.Guest.Admin && !facts.Seccomp {
		return "", session.NewError(session.CodeEngineUnsupported,
			"This Docker daemon does not filter system calls, which administrator sessions need.",
			"Use a daemon with seccomp, or launch an ordinary session.")
	}
	if facts.Rootless {
		c.Guest.UID, c.Guest.GID = 0, 0 // which is the person outside
	}
	if err := e.ownCommand(ctx, &c, image); err != nil {
		return "", err
	}
	if id, taken := e.reservations.take(ctx, c, image); taken {
		return id, nil
	}
	config, host := containerConfig(c), hostConfig(c, facts)
	if session.ImageDigest(c.Image) != "" {
		config.Image = image // Docker does not know the digests of images that no registry has
	}
	if c.Guest.Groups, err = e.Attach(ctx, c, facts, config, host); err != nil {
		return "", err
	}
	if !facts.Here {
		c.Guest.Pins = nil // the numbers of this machine's file systems mean nothing there
	}
	k, fresh, err := e.kernels.prepare(c.Name, delivery{daemon: facts.ID, arch: arch, binary: e.config.Guest,
		config: c.Guest, link: e.answers(facts)})
	if err != nil {
		return "", err
	}
	host.Mounts = slices.Concat(ownMounts(c, k, facts.Here), mounts(c), host.Mounts)
	empty, err := e.makeHome(ctx, host.Mounts) // Podman would make it without its labels
	id := ""
	if err == nil {
		id, err = e.create(ctx, c, config, host)
	}
	if err == nil {
		// Podman may fill a new volume with what the image has there.
		err = e.complete(ctx, id, image, empty && !facts.Podman, c, k, facts)
	}
	if err != nil {
		e.abandon(c, fresh, empty, err)
		return "", err
	}
	e.kernels.bind(id, k)
	return id, nil
}

// complete checks a created container and gives it what it has no mounts for. It removes the container if that fails.
func (e *Engine) complete(ctx context.Context, id, image string, empty bool, c engine.Container, k *kernel,
	facts *daemon.Facts) error {
	err := e.checkPlaces(ctx, id, image, empty, c.Mounts)
	if err == nil && !facts.Here {
		err = e.deliver(ctx, id, k)
	}
	if err == nil {
		return nil
	}
	e.clear(ctx, id)
	return err
}

// abandon removes the files and the empty home of a container that was not created. It keeps them where the outcome is
// unknown: the daemon may have made it, and the next Create, Remove or List finds it.
func (e *Engine) abandon(c engine.Container, fresh, empty bool, err error) {
	code := session.CodeOf(err)
	if code == session.CodeEngineUnavailable || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) {
		return
	}
	var left error
	if empty {
		ctx, cancel := e.daemon.Brief(context.Background())
		defer cancel()
		left = e.removeVolume(ctx, homeVolume(c.Labels))
	}
	if fresh {
		left = errors.Join(left, e.kernels.discard(c.Name))
	}
	if left != nil {
		e.daemon.Log.Warn("files of a container that was not created stay", "container", c.Name, "error", left)
	}
}

func validate(c engine.Container) error {
	if err := c.Check(); err != nil {
		return err
	}
	if len(labelsOf(c.Name, c.Labels)) == 0 {
		return session.NewError(session.CodeEngineInvalid,
			"The name of a container must begin with that of its session.", "")
	}
	return devices.CheckGrants(c)
}

// checkMounts names the directory that is missing. Docker's own error has no code.
func checkMounts(mounts []session.Mount) error {
	for _, m := range mounts {
		if _, err := os.Stat(m.Source); errors.Is(err, fs.ErrNotExist) {
			return session.WrapError(err, session.CodeEngineInvalid,
				"The directory "+m.Source+" does not exist on this machine.", "Create it or choose another one.")
		}
	}
	return nil
}

// platform returns the id and architecture of an image that is on this machine and that it can run.
func (e *Engine) platform(ctx context.Context, ref string, facts *daemon.Facts) (id, arch string, err error) {
	image, err := e.Image(ctx, ref)
	switch code := session.CodeOf(err); {
	case code == session.CodeNoImage:
		return "", "", images.NotHere(session.CodeNoImage, ref, err)
	case code == session.CodeEngineInvalid:
		return "", "", session.WrapError(err, session.CodeEngineInvalid, ref+" is not the name of an image.",
			"Write it as for docker pull, for example python:3.12.")
	case err != nil:
		return "", "", err
	}
	arch = image.Arch
	if arch == "" || arch == facts.Info.Arch || emulates(arch) {
		return image.ID, cmp.Or(arch, facts.Info.Arch), nil
	}
	return "", "", session.NewError(session.CodeEngineUnsupported,
		"The image "+ref+" is made for "+arch+" and this machine is "+facts.Info.Arch+".",
		"Choose a version of the image for "+facts.Info.Arch+".")
}

// ownCommand gives a server without a command the one that its image starts by itself.
func (e *Engine) ownCommand(ctx context.Context, c *engine.Container, image string) error {
	if c.Guest.Server == nil || len(c.Guest.Server.Argv) > 0 {
		return nil
	}
	ctx, cancel := e.daemon.Brief(ctx)
	defer cancel()
	said, err := e.daemon.API.ImageInspect(ctx, image)
	if err != nil {
		return daemon.Failure(ctx, err)
	}
	if said.Config != nil {
		c.Guest.Server = &engine.Server{Dir: said.Config.WorkingDir, Actions: c.Guest.Server.Actions,
			Argv: slices.Concat(said.Config.Entrypoint, said.Config.Cmd)}
	}
	if len(c.Guest.Server.Argv) == 0 {
		return session.NewError(session.CodeEngineInvalid, "The image "+c.Image+" starts nothing by itself.",
			"Give the service the command of its server.")
	}
	return nil
}

// makeHome makes the volume of a session's home, if it has one. It reports whether the volume is new, and so empty: for
// an older one, the daemon answers with the labels that it was made with.
func (e *Engine) makeHome(ctx context.Context, mounts []mount.Mount) (empty bool, err error) {
	const labelMade = "slipway.made"
	i := slices.IndexFunc(mounts, func(m mount.Mount) bool { return m.Target == session.Home })
	if i < 0 || mounts[i].Type != mount.TypeVolume {
		return false, nil
	}
	mark, labels := rand.Text(), maps.Clone(mounts[i].VolumeOptions.Labels)
	labels[labelMade] = mark
	made, err := e.daemon.API.VolumeCreate(ctx, volume.CreateOptions{Name: mounts[i].Source, Labels: labels})
	if daemon.IsConflict(err) {
		return false, nil
	}
	return err == nil && made.Labels[labelMade] == mark, daemon.Failure(ctx, err)
}

// emulates reports whether binfmt_misc has an interpreter for an architecture, as qemu-user-static registers it.
func emulates(arch string) bool {
	names := map[string]string{"amd64": "x86_64", "arm64": "aarch64", "386": "i386"}
	state, err := os.ReadFile("/proc/sys/fs/binfmt_misc/qemu-" + cmp.Or(names[arch], arch))
	return err == nil && strings.HasPrefix(string(state), "enabled")
}

// create asks the daemon. A container with the same name and labels counts as created.
func (e *Engine) create(ctx context.Context, c engine.Container, config *container.Config,
	host *container.HostConfig) (string, error) {
	made, err := e.daemon.API.ContainerCreate(ctx, config, host, networks.Join(c), nil, c.Name)
	switch {
	case err == nil:
		for _, warning := range made.Warnings {
			e.daemon.Log.Warn("docker warned about a container", "container", c.Name, "warning", warning)
		}
		return made.ID, nil
	case daemon.IsConflict(err):
		return e.adopt(ctx, c, err)
	case errdefs.IsNotFound(err) && ctx.Err() == nil:
		return "", images.NotHere(session.CodeNoImage, c.Image, err)
	}
	if ctx.Err() == nil {
		if failed := e.Devices.Failure(err); failed != nil {
			return "", failed
		}
	}
	failed := daemon.Failure(ctx, err)
	if session.CodeOf(failed) == session.CodeEngineInvalid {
		if missing := checkMounts(c.Mounts); missing != nil {
			return "", missing
		}
	}
	return "", failed
}

// adopt returns the container that has c's name if its labels are the same.
func (e *Engine) adopt(ctx context.Context, c engine.Container, conflict error) (string, error) {
	there, err := e.Inspect(ctx, c.Name)
	if err != nil {
		return "", err
	}
	if !maps.Equal(there.Labels, daemon.OwnLabels(c.Labels)) {
		return "", session.WrapError(conflict, session.CodeEngineConflict, "Another container is named "+c.Name+".",
			"Remove it with `docker rm` or launch again.")
	}
	return there.ID, nil
}

// labelsOf returns the labels of a container that Slipway made, and none for others: a container run by hand has the
// labels of its image, which may look like ours, but the image cannot choose the container's name.
func labelsOf(name string, labels map[string]string) map[string]string {
	kept := daemon.OwnLabels(labels)
	if kept[engine.LabelSession] == "" || !strings.HasPrefix(name, homeVolume(kept)+"-") {
		return map[string]string{}
	}
	return kept
}

// allLabels sets every label, so that none comes from the image.
func allLabels(labels map[string]string) map[string]string {
	all := maps.Clone(labels)
	for _, name := range append([]string{devices.LabelTrial}, engine.ContainerLabels...) {
		all[name] = labels[name] // Docker takes the image's where there is none, not where it is empty
	}
	return all
}

// containerConfig replaces the start of the image: the guest is process 1, and there is no health check.
func containerConfig(c engine.Container) *container.Config {
	return &container.Config{
		Hostname:    c.Hostname,
		Image:       c.Image,
		Labels:      allLabels(c.Labels),
		User:        "0:0",
		WorkingDir:  "/",
		Entrypoint:  []string{ownFolder + "/guest", "init"},
		Cmd:         []string{},
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		StopSignal:  "SIGTERM",
	}
}

func hostConfig(c engine.Container, facts *daemon.Facts) *container.HostConfig {
	h := &container.HostConfig{
		RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled},
		LogConfig: container.LogConfig{Type: "json-file",
			Config: map[string]string{"max-size": "16m", "max-file": "4"}},
		CapDrop:     []string{"ALL"},
		CapAdd:      slices.Clone(capabilities),
		SecurityOpt: []string{"no-new-privileges"},
		ShmSize:     int64(c.Shm),
		OomScoreAdj: 500, // the kernel kills sessions before daemons
		Init:        new(bool),
		Resources:   resources(c),
	}
	if c.Guest.Admin {
		h.CapAdd = append(h.CapAdd, "FSETID") // or files of packages lose their set-group-ID bit
	}
	if facts.Remapped && !facts.Rootless {
		h.UsernsMode = "host" // or the container's root could not read the guest's configuration
	}
	if c.Network != "" {
		h.NetworkMode = container.NetworkMode(c.Network)
	}
	if facts.SELinux {
		h.SecurityOpt = append(h.SecurityOpt, "label=disable") // or it could not reach the link
	}
	return h
}

// resources are the limits of a container, which also a running one can get.
func resources(c engine.Container) container.Resources {
	r := container.Resources{
		CpusetCpus: strings.Trim(strings.ReplaceAll(fmt.Sprint(c.CPUs), " ", ","), "[]"),
		NanoCPUs:   int64(len(c.CPUs)) * 1e9,
		Memory:     int64(c.Memory),
		MemorySwap: int64(c.Memory),
	}
	if c.Processes > 0 {
		r.PidsLimit = new(int64(c.Processes))
	}
	return r
}

func bind(from, to string, readOnly bool) mount.Mount {
	return mount.Mount{Type: mount.TypeBind, Source: from, Target: to, ReadOnly: readOnly}
}

func volumeOf(c engine.Container, name, target string) mount.Mount {
	return mount.Mount{Type: mount.TypeVolume, Source: name, Target: target,
		VolumeOptions: &mount.VolumeOptions{NoCopy: true, Labels: map[string]string{
			engine.LabelSession:  c.Labels[engine.LabelSession],
			engine.LabelInstance: c.Labels[engine.LabelInstance],
		}}}
}

// ownMounts lists the guest's own files and the spool, or the volume into which they are copied on another machine.
func ownMounts(c engine.Container, k *kernel, here bool) []mount.Mount {
	if !here {
		return []mount.Mount{volumeOf(c, "", ownFolder)}
	}
	return []mount.Mount{
		bind(k.guestPath(), ownFolder+"/guest", true),
		bind(k.configPath(), ownFolder+"/config.json", true),
		bind(k.linkPath(), ownFolder+"/link", true),
		volumeOf(c, "", ownFolder+"/spool"),
	}
}

// mounts lists the home unless the session mounts one, then what it mounts.
func mounts(c engine.Container) (list []mount.Mount) {
	if !slices.ContainsFunc(c.Mounts, func(m session.Mount) bool { return path.Clean(m.Target) == session.Home }) {
		list = append(list, volumeOf(c, homeVolume(c.Labels), session.Home))
	}
	for _, m := range c.Mounts {
		list = append(list, bind(m.Source, m.Target, m.ReadOnly))
	}
	for _, target := range c.Hidden {
		list = append(list, mount.Mount{Type: mount.TypeTmpfs, Target: target, ReadOnly: true,
			TmpfsOptions: &mount.TmpfsOptions{Mode: 0o555}})
	}
	return list
}

func homeVolume(labels map[string]string) string { return "slipway-" + labels[engine.LabelSession] }
