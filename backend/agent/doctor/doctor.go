// Package doctor probes what an agent's sessions need of their machine, and suggests remedies.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"time"

	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/gpu"
)

// Config is what the doctor needs to know of how the agent was set up.
type Config struct {
	Note    string // why the engine is simulated, if that was not requested
	LogFile string // of the agent
	System  string // runtime.GOOS if empty
	// Guest returns the program that runs inside containers of an architecture. nil: that is not probed.
	Guest func(arch string) ([]byte, error)
}

// Devices lists the machine's devices.
type Devices interface {
	Inventory(ctx context.Context) ([]gpu.Device, error)
}

// Doctor probes one machine.
type Doctor struct {
	Config
	Dir     string // the agent's data folder
	Engine  engine.Host
	Devices Devices
	// Disk measures the disk where images and homes are kept. A total of 0: unknown.
	Disk func(ctx context.Context) (free, total gpu.Bytes, err error)
}

func fails(c session.Check, text, remedy string) session.Check {
	c.Result, c.Text, c.Remedy = session.CheckFailed, text, remedy
	return c
}

// warns is fails for what works only partly.
func warns(c session.Check, text, remedy string) session.Check {
	c.Result, c.Text, c.Remedy = session.CheckWarning, text, remedy
	return c
}

const (
	timeLimit   = 10 * time.Second
	leastDisk   = 5 * gpu.GiB            // free space below which pulls and homes soon fail
	usualSocket = "/var/run/docker.sock" // of Docker, unless configured otherwise
	simulated   = "sim"                  // name of a simulated engine
	podman      = "podman"               // name of Podman, which is used as Docker is
	linux       = "linux"
)

// Check runs the probes until asked is cancelled.
func (d Doctor) Check(asked context.Context) ([]session.Check, error) {
	ctx, cancel := context.WithTimeout(asked, timeLimit)
	defer cancel()
	info, err := d.Engine.Info(ctx)
	if asked.Err() != nil {
		return nil, asked.Err()
	}
	system := cmp.Or(d.System, runtime.GOOS)
	real := err != nil || info.Name != simulated
	checks := []session.Check{d.engineCheck(system, info, err)}
	docker := !info.Elsewhere // else it is Slurm, which says itself what its nodes lack
	// Podman's containers need no daemon, and one whose data are elsewhere is not set up on this machine.
	remote := real && docker && err == nil && info.DataRoot == ""
	daemon := real && docker && info.Name != podman && !remote
	if path, local := engineSocket(info); local && docker && system == linux {
		if access, known := accessCheck(path, socketState(path)); known {
			checks = append(checks, access)
		}
	}
	checks = append(checks, info.Checks...)
	if err == nil {
		if docker {
			checks = append(checks, cgroupCheck(info))
		}
		if daemon {
			checks = append(checks, liveRestoreCheck(info))
		}
		for _, w := range info.Warnings {
			if w.Code != session.CodeSimulated { // the first check reports it
				checks = append(checks, session.Check{ID: string(w.Code), Title: w.Title, Result: session.CheckWarning,
					Text: w.Text, Remedy: warningRemedy(info.Name, w.Code)})
			}
		}
	}
	if docker {
		checks = append(checks, d.devicesCheck(ctx, real))
	}
	if asked.Err() != nil {
		return nil, asked.Err()
	}
	if _, noDriver := os.Stat(nvidiaControl); noDriver == nil && real && err == nil && docker {
		checks = append(checks, judgeAttachment(d.Engine.Attachment(ctx, true)))
	}
	if d.Guest != nil {
		checks = append(checks, d.guestCheck(info.Arch))
	}
	checks = append(checks, d.diskCheck(ctx, daemon, remote), d.filesCheck(system))
	if real {
		checks = append(checks, noexecCheck(d.Dir, noexec(d.Dir)))
	}
	if clock, known := clockCheck(clockState()); known && system == linux {
		checks = append(checks, clock)
	}
	return checks, asked.Err()
}

// remedies are the commands or sentences that help against a warning of the engine. Podman has some of its own.
var (
	remedies = map[session.Code]string{
		session.CodeTooOld:   "sudo apt-get update && sudo apt-get install -y docker.io",
		session.CodeNotLinux: "Switch Docker Desktop to Linux containers",
		session.CodeNoFilter: `Remove "iptables": false from /etc/docker/daemon.json, or --iptables=false from where ` +
			`dockerd is started, then: sudo systemctl restart docker`,
		session.CodeNotApart:       "sudo modprobe br_netfilter",
		session.CodeNoLimits:       "docker info 2>&1 | grep WARNING",
		session.CodeNoProcessLimit: "docker info 2>&1 | grep WARNING",
	}
	podmanRemedies = map[session.Code]string{
		session.CodeNoFilter:       installDocker,
		session.CodeTooOld:         "sudo apt-get update && sudo apt-get install -y podman",
		session.CodeNoLimits:       "podman info --format '{{.Host.CgroupsVersion}} {{.Host.CgroupControllers}}'",
		session.CodeNoProcessLimit: "podman info --format '{{.Host.CgroupsVersion}} {{.Host.CgroupControllers}}'",
	}
)

func warningRemedy(name string, code session.Code) string {
	if remedy, ok := podmanRemedies[code]; ok && name == podman {
		return remedy
	}
	return remedies[code]
}

func (d Doctor) engineCheck(system string, info engine.Info, err error) session.Check {
	c := session.Check{ID: "engine", Title: "Container engine"}
	path, _ := dockerSocket(os.Getenv("DOCKER_HOST"))
	switch {
	case err != nil && info.Elsewhere:
		return fails(c, session.AsError(err, session.CodeEngineUnavailable).Message, "scontrol ping")
	case err != nil:
		return fails(c, session.AsError(err, session.CodeEngineUnavailable).Message,
			dockerRemedy(system, socketState(path)))
	case info.Name == simulated && d.Note != "":
		return warns(c, d.Note, dockerRemedy(system, socketState(path)))
	case info.Name == simulated:
		return warns(c, "Sessions are simulated.", "")
	case info.Elsewhere:
		c.Result, c.Text = session.CheckOK, fmt.Sprintf("Slurm %s answers; the largest partition has %d CPUs, "+
			"%s of memory.", info.Version, info.CPUs, info.Memory)
		return c
	}
	name, better := "Docker", ""
	if info.Name == podman {
		name, better = "Podman", installDocker
	}
	c.Result, c.Text = session.CheckOK, fmt.Sprintf("%s %s answers; %d CPUs, %s of memory, linux/%s.",
		name, info.Version, info.CPUs, info.Memory, info.Arch)
	for i, feature := range info.Lacks {
		if i == 0 {
			c = warns(c, c.Text+" It works in part.", better)
		}
		c.Text += " " + feature.Missing().English()
	}
	return c
}

// engineSocket is dockerSocket of an engine that may have answered.
func engineSocket(info engine.Info) (path string, local bool) {
	if info.Socket != "" {
		return info.Socket, true
	}
	return dockerSocket(os.Getenv("DOCKER_HOST"))
}

// dockerSocket returns the path of Docker's socket. It reports false if Docker is not reached by a local socket.
func dockerSocket(host string) (path string, local bool) {
	if host == "" {
		return usualSocket, true
	}
	return strings.CutPrefix(host, "unix://")
}

// accessCheck judges, by the error of opening it, whether this user may use Docker's socket. It reports false if there
// is none.
func accessCheck(path string, err error) (session.Check, bool) {
	c := session.Check{ID: "access", Title: "Access to Docker", Result: session.CheckOK,
		Text: "This user may use " + path + "."}
	if errors.Is(err, fs.ErrPermission) {
		c = fails(c, "This user is not in the group docker, so "+path+" is closed to it.",
			dockerRemedy(linux, err))
	}
	return c, !errors.Is(err, fs.ErrNotExist)
}

func socketState(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		return file.Close()
	}
	return err
}

const installDocker = `sudo apt-get install -y docker.io && sudo usermod -aG docker "$USER"`

// dockerRemedy is the command that most likely helps, by the error of opening the socket, which always fails.
func dockerRemedy(system string, err error) string {
	switch {
	case system != linux:
		return "slipway agent add HOST"
	case errors.Is(err, fs.ErrPermission):
		return "sudo usermod -aG docker \"$USER\" && newgrp docker"
	case os.Getenv("DOCKER_HOST") != "":
		return "docker -H \"$DOCKER_HOST\" info"
	case errors.Is(err, fs.ErrNotExist) && !installed("dockerd"):
		if installed("podman") {
			return "systemctl --user enable --now podman.socket"
		}
		return installDocker
	}
	return "sudo systemctl start docker"
}

func installed(program string) bool {
	for _, dir := range strings.Split(os.Getenv("PATH")+":/usr/sbin:/usr/local/sbin", ":") {
		if info, err := os.Stat(dir + "/" + program); err == nil && !info.IsDir() {
			return true
		}
	}
	return false
}

func cgroupCheck(info engine.Info) session.Check {
	c := session.Check{ID: "cgroup", Title: "Control groups", Result: session.CheckOK,
		Text: fmt.Sprintf("Version %d; CPU and memory limits of sessions are enforced.", info.Cgroup)}
	switch {
	case info.Cgroup == 1:
		c = warns(c, "Version 1 works, but version 2 reports pressure and memory kills more exactly.",
			"Boot with systemd.unified_cgroup_hierarchy=1")
	case info.Name == simulated:
		c.Text = "Not needed by the simulated engine."
	case info.Cgroup == 0:
		c = warns(c, "The engine does not say which version it uses.", "")
	}
	return c
}

func liveRestoreCheck(info engine.Info) session.Check {
	c := session.Check{ID: "live-restore", Title: "Sessions survive a restart of Docker", Result: session.CheckOK,
		Text: "live-restore is on."}
	if !info.LiveRestore {
		c = warns(c, "live-restore is off: updating or restarting Docker ends every session.",
			`Add "live-restore": true to /etc/docker/daemon.json, then: sudo systemctl reload docker`)
	}
	return c
}

func (d Doctor) guestCheck(arch string) session.Check {
	if arch == "" {
		arch = runtime.GOARCH
	}
	c := session.Check{ID: "guest", Title: "Helper for containers", Result: session.CheckOK}
	data, err := d.Guest(arch)
	if err != nil {
		return fails(c, "This program holds no helper for linux/"+arch+".", "make build")
	}
	c.Text = fmt.Sprintf("linux/%s, %s.", arch, gpu.Bytes(len(data)))
	return c
}

func (d Doctor) diskCheck(ctx context.Context, docker, remote bool) session.Check {
	c := session.Check{ID: "disk", Title: "Disk space", Result: session.CheckOK}
	free, total, err := d.Disk(ctx)
	switch {
	case err != nil:
		return warns(c, session.AsError(err, session.CodeAgentUnavailable).Message, "")
	case remote:
		c.Text = fmt.Sprintf("%s of %s are free for Slipway's own files.", free, total)
		return c
	case total == 0:
		return warns(c, "How much is free where images are kept is not known.", "")
	}
	c.Text = fmt.Sprintf("%s of %s are free where images and homes are kept.", free, total)
	if free < leastDisk {
		c.Result, c.Remedy = session.CheckWarning, "docker image prune"
	}
	if free < leastDisk && !docker {
		c.Remedy = "slipway image rm"
	}
	return c
}

func (d Doctor) filesCheck(system string) session.Check {
	dir := d.Dir
	c := session.Check{ID: "files", Title: "Slipway's own files", Result: session.CheckOK, Text: "In " + dir + "."}
	if log := d.LogFile; log != "" {
		c.Text = "In " + dir + "; the log is " + log + "."
	}
	probe, err := os.CreateTemp(dir, "doctor-*")
	if err == nil {
		err = errors.Join(probe.Close(), os.Remove(probe.Name()))
	}
	if err != nil {
		c = fails(c, "The folder "+dir+" cannot be written to.", "df -h "+dir)
	}
	if err != nil && system == "windows" {
		c.Remedy = "dir " + dir
	}
	return c
}

// noexecCheck judges the folder from which the helper is mounted into containers: a mount inherits noexec.
func noexecCheck(dir string, forbidden bool) session.Check {
	c := session.Check{ID: "noexec", Title: "Programs may run from Slipway's folder", Result: session.CheckOK,
		Text: "The file system of " + dir + " lets programs run."}
	if forbidden {
		c = fails(c, "The file system of "+dir+" is mounted noexec, so the helper cannot run inside containers.",
			"export SLIPWAY_HOME=/var/tmp/slipway-$USER")
	}
	return c
}

func clockCheck(kept, known bool) (session.Check, bool) {
	c := session.Check{ID: "clock", Title: "Clock", Result: session.CheckOK,
		Text: "It is kept right by a time service."}
	if !kept {
		c = warns(c, "No time service keeps it right, so times of sessions and logs may be off.",
			"sudo timedatectl set-ntp true")
	}
	return c, known
}

const nvidiaControl = "/dev/nvidiactl" // exists while NVIDIA's driver is loaded

// devicesCheck lists the devices. A machine without any passes.
func (d Doctor) devicesCheck(ctx context.Context, real bool) session.Check {
	c := session.Check{ID: "devices", Title: "GPUs", Result: session.CheckOK}
	found, err := d.Devices.Inventory(ctx)
	var told *gpu.Error
	switch {
	case errors.As(err, &told):
		return warns(c, told.Message, told.Hint)
	case err != nil:
		return warns(c, "What GPUs this machine has cannot be found out.", "")
	case len(found) == 0:
		c.Text = "This machine has none."
		return c
	}
	names := make([]string, len(found))
	for i, device := range found {
		names[i] = fmt.Sprintf("GPU %d %s", device.Index, device.Model)
		if device.Memory > 0 {
			names[i] += " with " + device.Memory.String()
		}
	}
	c.Text = strings.Join(names, ", ") + "."
	if !real {
		c.Text += " They are simulated."
	}
	return c
}

// judgeAttachment judges how NVIDIA devices get into containers.
func judgeAttachment(found engine.Attachment, err error) session.Check {
	c := session.Check{ID: "attachment", Title: "NVIDIA devices in containers", Result: session.CheckOK}
	switch {
	case err != nil:
		failed := session.AsError(err, session.CodeEngineInternal)
		return fails(c, failed.Message, failed.Hint)
	case found.Way == engine.AttachNone:
		var texts []string
		remedy := "" // of the best way
		for _, attempt := range found.Tried {
			texts, remedy = append(texts, attempt.Text), cmp.Or(remedy, attempt.Remedy)
		}
		return fails(c, strings.Join(texts, " "), remedy)
	}
	c.Text = "Docker hands them in by " + wayText[found.Way] + "; a container started with them."
	if found.HardLimit {
		c.Text += " The driver holds parts of a device to their memory."
	}
	return c
}

var wayText = map[engine.AttachWay]string{
	engine.AttachCDI: "CDI", engine.AttachRequest: "a device request", engine.AttachRuntime: "the NVIDIA runtime",
	engine.AttachSim: "simulation", engine.AttachSlurm: "Slurm",
}
