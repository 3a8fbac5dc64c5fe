package provision

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

const (
	leastDisk = 200 * gpu.MiB    // for a program and its data
	fewDisk   = 5 * gpu.GiB      // soon filled by images and homes
	mostSkew  = 30 * time.Second // between the clocks
)

type finding struct {
	session.Check
	code session.Code
}

// Checks returns the checks of a machine. A failed one has its cause and one remedy.
func (f Findings) Checks() []session.Check {
	var checks []session.Check
	for _, one := range f.judge() {
		checks = append(checks, one.Check)
	}
	return checks
}

// Err returns the first failed check as an error, or nil.
func (f Findings) Err() error {
	for _, one := range f.judge() {
		if one.Result == session.CheckFailed {
			return session.NewError(one.code, one.Text, one.Remedy)
		}
	}
	return nil
}

func (f Findings) judge() []finding {
	if f.Slurm.Wanted || f.Slurm.Here && f.Socket != SocketOpen { // what the nodes have, Slurm knows
		return []finding{f.system(), f.folder(), f.disk(), f.slurm(), f.keeper(), f.clock()}
	}
	all := []finding{f.system(), f.folder(), f.disk(), f.docker()}
	if f.Docker != "" {
		all = append(all, f.liveRestore())
	}
	if f.Cgroup != 0 {
		all = append(all, f.cgroup())
	}
	return append(all, f.devices(), f.keeper(), f.clock())
}

func ok(id, title, text string) finding {
	return finding{Check: session.Check{ID: id, Title: title, Result: session.CheckOK, Text: text}}
}

func (c finding) warn(text, remedy string) finding {
	c.Result, c.Text, c.Remedy = session.CheckWarning, text, remedy
	return c
}

func (c finding) fail(code session.Code, text, remedy string) finding {
	c.Result, c.code, c.Text, c.Remedy = session.CheckFailed, code, text, remedy
	return c
}

func (f Findings) system() finding {
	c := ok("system", "Operating system", fmt.Sprintf("%s %s on %s, %s.", f.OS, f.Kernel, f.Arch, f.Host))
	if f.OS != "linux" {
		return c.fail(session.CodeInstallFailed, fmt.Sprintf("The machine runs %s; sessions need Linux.", f.OS),
			"Choose a machine with Linux")
	}
	if f.Arch != "amd64" && f.Arch != "arm64" {
		return c.fail(session.CodeInstallFailed, fmt.Sprintf("There is no Slipway for the processor %s.",
			f.Arch), "Choose a machine with x86-64 or arm64")
	}
	return c
}

func (f Findings) folder() finding {
	c := ok("folder", "Folder for Slipway", f.Dir+".")
	switch f.Folder {
	case FolderNoexec:
		return c.fail(session.CodeInstallFailed,
			"Programs may not run from "+f.Dir+": its file system is mounted noexec.",
			"slipway agent add … --dir /var/tmp/slipway-"+f.User)
	case FolderReadonly:
		return c.fail(session.CodeInstallFailed, "The folder "+f.Dir+" cannot be created or written.",
			"slipway agent add … --dir /var/tmp/slipway-"+f.User)
	}
	return c
}

func (f Findings) disk() finding {
	c := ok("disk", "Disk space", fmt.Sprintf("%s of %s are free where Slipway's files are.", f.DiskFree, f.DiskTotal))
	switch {
	case f.DiskTotal == 0:
		return c.warn("How much is free there is not known.", "df -h "+f.Dir)
	case f.DiskFree < leastDisk:
		return c.fail(session.CodeDiskFull, fmt.Sprintf("Only %s are free in %s; Slipway needs %s.", f.DiskFree,
			f.Dir, leastDisk), "docker image prune")
	case f.DiskFree < fewDisk:
		return c.warn(fmt.Sprintf("Only %s are free, which images and homes soon fill.", f.DiskFree),
			"docker image prune")
	}
	return c
}

func (f Findings) docker() finding {
	c := ok("docker", "Docker", "Docker "+f.Docker+" answers.")
	at := strings.TrimPrefix(f.DockerHost, "unix://")
	switch f.Socket {
	case SocketMissing:
		return c.fail(session.CodeInstallFailed, "Docker is not installed there.",
			`sudo apt-get install -y docker.io && sudo usermod -aG docker "$USER"`)
	case SocketStopped:
		return c.fail(session.CodeInstallFailed, "Docker is installed there and does not run.",
			"sudo systemctl start docker")
	case SocketForbidden:
		return c.fail(session.CodeInstallFailed, fmt.Sprintf("The user %s may not use %s.", f.User, at),
			"sudo usermod -aG docker "+f.User)
	case SocketRemote:
		return c.fail(session.CodeInstallFailed, "Docker is not on that machine but at "+at+".",
			"unset DOCKER_HOST there, or add that machine instead")
	}
	switch {
	case f.Docker == "":
		return c.warn("Docker's socket is open; its version could not be asked.", "docker version")
	case old(f.Docker):
		return c.fail(session.CodeInstallFailed, "Docker "+f.Docker+" is too old; 20.10 or newer is needed.",
			"sudo apt-get update && sudo apt-get install -y docker.io")
	}
	return c
}

func (f Findings) slurm() finding {
	c := ok("slurm", "Slurm", strings.TrimSpace("Slurm "+f.Slurm.Version)+" starts sessions as jobs on its nodes.")
	if !f.Slurm.Here {
		return c.fail(session.CodeInstallFailed, "The commands of Slurm, such as sbatch, are not found on "+f.Host+".",
			"Use the address of a login node where sbatch works, or ssh:// for a machine with Docker.")
	}
	return c
}

func old(version string) bool {
	var major, minor int
	n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor)
	return n == 2 && (major < 20 || major == 20 && minor < 10)
}

func (f Findings) liveRestore() finding {
	c := ok("live-restore", "Sessions survive a restart of Docker", "live-restore is on.")
	if f.LiveRestore == nil || !*f.LiveRestore {
		return c.warn("live-restore is off: updating or restarting Docker ends every session.",
			`Add "live-restore": true to /etc/docker/daemon.json, then: sudo systemctl reload docker`)
	}
	return c
}

func (f Findings) cgroup() finding {
	c := ok("cgroup", "Control groups", "Version 2.")
	if f.Cgroup == 1 {
		return c.warn("Version 1 works, but version 2 reports pressure and memory kills more exactly.",
			"Boot with systemd.unified_cgroup_hierarchy=1")
	}
	return c
}

func (f Findings) devices() finding {
	if len(f.GPUs) == 0 {
		return ok("devices", "GPUs", "It has none.")
	}
	c := ok("devices", "GPUs", strings.Join(f.GPUs, ", ")+".")
	nvidia := slices.ContainsFunc(f.GPUs, func(model string) bool { return !strings.HasPrefix(model, "AMD ") })
	switch {
	case !nvidia:
	case f.NVIDIA == "":
		return c.warn(c.Text+" NVIDIA's driver is not loaded.", "sudo apt-get install -y nvidia-driver && sudo reboot")
	case f.Toolkit == "" && !slices.Contains(f.Runtimes, "nvidia"):
		return c.warn(c.Text+" NVIDIA's container toolkit is missing, so no container can use them.",
			"sudo apt-get install -y nvidia-container-toolkit && sudo nvidia-ctk runtime configure && sudo systemctl "+
				"restart docker")
	default:
		c.Text += " Driver " + f.NVIDIA + "."
	}
	return c
}

// keeper says what keeps the agent running without a login.
func (f Findings) keeper() finding {
	c := ok("keeper", "The agent keeps running after logout", "Your systemd there runs it, also after a reboot.")
	switch {
	case f.Systemd && f.Linger:
	case f.Killing:
		return c.warn("The machine ends processes of users who log out, so the agent may end too. "+
			"Sessions keep running, and the next connection restarts it.", "sudo loginctl enable-linger "+f.User)
	case f.Systemd:
		c.Text = "It runs as a service of your systemd if possible, otherwise as a process that the next connection " +
			"restarts after a reboot."
	default:
		c.Text = "It runs as a process. After a reboot the next connection restarts it."
	}
	return c
}

func (f Findings) clock() finding {
	c := ok("clock", "Clock", "It agrees with this computer's.")
	if f.Clock.Abs() > mostSkew {
		way := "ahead of"
		if f.Clock < 0 {
			way = "behind"
		}
		return c.warn(fmt.Sprintf("It is %s %s this computer's, so times of sessions look wrong.",
			f.Clock.Abs().Round(time.Second), way), "sudo timedatectl set-ntp true")
	}
	return c
}
