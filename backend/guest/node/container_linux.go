package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"slipway/backend/engine/cgroup"
	"slipway/backend/session"
	"slipway/gpu"
)

// plan is what the first process of a container needs to know. It gets it on a pipe.
type plan struct {
	Box
	Dir       string   // of the run on the node
	Layers    []string // folders, lowest first
	Home      string   // folder, unless a mount is the home
	Hostname  string
	Files     map[string]string // further files and their content
	Variables []string
	Made      bool // the container is there already, without capabilities
}

// The descriptors of the first process: it reads its plan and writes ready, then reads a true when the guest may start
// and writes going, or at any time why it failed. The start of the guest closes both.
const (
	planFD   = 3
	statusFD = 4
	ready    = "ready"
	going    = "going"
)

// The guest in a container.
const guestProgram = "/.slipway/guest"

// The folders of a run on the node.
const (
	rootFolder  = "root" // where the container's file system is mounted
	upperFolder = "upper"
	workFolder  = "work"
	layerFolder = "l" // links to the layers, whose short names fit into the options of a mount
	linkFolder  = "link"
	spoolFolder = "spool"
	guestCopy   = "guest"
	configCopy  = "config.json"
)

// guestCapabilities are those of the Docker engine's containers, which the guest needs.
var guestCapabilities = []uintptr{unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_KILL,
	unix.CAP_SETGID, unix.CAP_SETPCAP, unix.CAP_SETUID}

// setupCapabilities are needed until the guest starts: for the mounts and the loopback.
func setupCapabilities() []uintptr {
	return slices.Concat(guestCapabilities, []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN})
}

// containerScore makes the kernel kill the container before the runner when memory runs out. The Docker engine has it.
const containerScore = "500"

// defaultShm is the size of /dev/shm where none is asked for, as in Docker.
const defaultShm = 64 * gpu.MiB

// contain is the first process of a container: it makes the container and becomes the guest.
func contain([]string) int {
	runtime.LockOSThread() // capabilities belong to a thread; this one becomes the guest
	unix.CloseOnExec(planFD)
	unix.CloseOnExec(statusFD)
	status := os.NewFile(statusFD, "status")
	_, _ = fmt.Fprint(status, becomeGuest(json.NewDecoder(os.NewFile(planFD, "plan")), status))
	return CodeFailed
}

// becomeGuest returns only the reason why it failed.
func becomeGuest(plans *json.Decoder, status io.Writer) error {
	// The signal that ends this process with its runner belongs to a thread, too. A runner that ended sends no plan.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return err
	}
	var p plan
	if err := plans.Decode(&p); err != nil {
		return err
	}
	unix.Umask(0o022)
	if !p.Made {
		if err := p.enter(); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(status, ready); err != nil {
		return err
	}
	var start bool
	if err := plans.Decode(&start); err != nil {
		return err // the runner has ended, or was asked to
	}
	if err := p.limit(); err != nil {
		return err
	}
	if err := unix.Access(guestProgram, unix.X_OK); err != nil { // a folder of the node may allow no programs
		return fmt.Errorf("start the guest: %w", err)
	}
	if _, err := io.WriteString(status, going); err != nil {
		return err
	}
	return fmt.Errorf("start the guest: %w", syscall.Exec(guestProgram, []string{"slipway-guest", "init"}, p.Variables))
}

// enter mounts everything and makes it the root.
func (p *plan) enter() error {
	if p.Private {
		if err := loopbackUp(); err != nil {
			return fmt.Errorf("turn on the loopback: %w", err)
		}
	}
	if err := os.Chdir(p.Dir); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := p.overlay(); err != nil {
		return err
	}
	root, err := openFolder(rootFolder)
	if err != nil {
		return err
	}
	m := &mounter{root: root}
	m.system(p)
	m.files(p)
	m.own()
	m.mounts(p)
	root.close()
	if m.err != nil {
		return m.err
	}
	if err := unix.Sethostname([]byte(p.Hostname)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	err = os.Chdir(rootFolder)
	if err == nil {
		err = unix.PivotRoot(".", ".")
	}
	if err == nil {
		err = unix.Unmount(".", unix.MNT_DETACH)
	}
	if err == nil {
		err = os.Chdir("/")
	}
	if err != nil {
		return fmt.Errorf("enter the container: %w", err)
	}
	return nil
}

// overlay mounts the image with a layer of the container's own. Its options have at most a page, so the layers' names
// are short.
func (p *plan) overlay() error {
	lower := make([]string, len(p.Layers))
	for i, layer := range p.Layers {
		name := path.Join(layerFolder, strconv.Itoa(i))
		if err := os.Symlink(layer, name); err != nil {
			return err
		}
		lower[len(lower)-1-i] = name
	}
	options := "userxattr,lowerdir=" + strings.Join(lower, ":") + ",upperdir=" + upperFolder + ",workdir=" + workFolder
	if err := unix.Mount("overlay", rootFolder, "overlay", 0, options); err != nil {
		return fmt.Errorf("mount the image in %s: %w", p.Dir, err)
	}
	return nil
}

// limit drops what the guest must not have. It cannot be undone.
func (p *plan) limit() error {
	// Without this the container might be killed after the runner, no worse.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte(containerScore), 0)
	if most := uint64(p.Processes); most > 0 {
		var now unix.Rlimit
		err := unix.Getrlimit(unix.RLIMIT_NPROC, &now)
		if err == nil && most < now.Max {
			err = unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: most, Max: most})
		}
		if err != nil {
			return fmt.Errorf("limit processes: %w", err)
		}
	}
	if !p.Made {
		if err := dropCapabilities(); err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	return nil
}

// dropCapabilities leaves those that the guest needs.
func dropCapabilities() error {
	var want [2]unix.CapUserData
	for capability := uintptr(0); ; capability++ {
		if _, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, capability, 0, 0, 0); err != nil {
			break // after the last that this kernel knows
		}
		if slices.Contains(guestCapabilities, capability) {
			want[0].Effective |= 1 << capability // all of them are below 32
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil {
			return fmt.Errorf("drop capability %d: %w", capability, err)
		}
	}
	want[0].Permitted, want[0].Inheritable = want[0].Effective, want[0].Effective
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capset(&header, &want[0]); err != nil { // lowers the ambient ones, too
		return fmt.Errorf("drop capabilities: %w", err)
	}
	var have [2]unix.CapUserData
	if err := unix.Capget(&header, &have[0]); err != nil || have != want {
		return fmt.Errorf("capabilities remain: %v %w", have, err)
	}
	return nil
}

// mounter mounts in a root until something fails.
type mounter struct {
	root *folder
	err  error
}

// on calls fn with an open place of the container, and with a path that leads to it.
func (m *mounter) on(at string, open func(string) (*os.File, error), fn func(place string) error) {
	if m.err != nil {
		return
	}
	place, err := open(at)
	if err == nil {
		err = errors.Join(fn(held(place)), place.Close())
	}
	if err != nil {
		m.err = fmt.Errorf("mount %s: %w", at, err)
	}
}

func (m *mounter) dir(at string) (*os.File, error) { return m.root.directory(at, 0o755) }

// mount mounts a file system on a directory.
func (m *mounter) mount(kind, at string, flags uintptr, options string) {
	m.on(at, m.dir, func(place string) error { return unix.Mount(kind, place, kind, flags, options) })
}

// bind mounts a file or a directory with everything below it.
func (m *mounter) bind(from, at string, readOnly bool) {
	info, err := os.Stat(from)
	if err != nil && m.err == nil {
		m.err = err
	}
	if m.err != nil {
		return
	}
	open := m.root.place
	if info.IsDir() {
		open = m.dir
	}
	m.on(at, open, func(place string) error { return unix.Mount(from, place, "", unix.MS_BIND|unix.MS_REC, "") })
	if readOnly {
		m.on(at, func(at string) (*os.File, error) { return m.root.open(at, 0) }, makeReadOnly)
	}
}

// makeReadOnly makes a mount and those below it read-only. Before Linux 5.12 it makes only the mount itself read-only,
// as Docker does there.
func makeReadOnly(place string) error {
	flags := uint(unix.AT_RECURSIVE)
	err := unix.MountSetattr(unix.AT_FDCWD, place, flags, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	if !errors.Is(err, unix.ENOSYS) {
		return err
	}
	var stat unix.Statfs_t
	if err := unix.Statfs(place, &stat); err != nil {
		return err
	}
	const fixed = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME |
		unix.MS_RELATIME // a user namespace cannot take them away
	return unix.Mount("", place, "", uintptr(stat.Flags)&fixed|unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
}

// system mounts what every container has of the kernel.
func (m *mounter) system(p *plan) {
	const safe = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	m.mount("proc", "/proc", safe, "")
	m.bind("/sys", "/sys", true)
	m.groups()
	m.mount("tmpfs", "/dev", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=755,size=64k")
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		m.bind("/dev/"+name, "/dev/"+name, false)
	}
	for _, device := range p.Devices {
		if _, err := os.Stat(device); err == nil {
			m.bind(device, device, false)
		}
	}
	m.mount("devpts", "/dev/pts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
	size := p.Shm
	if size == 0 {
		size = defaultShm
	}
	m.mount("tmpfs", "/dev/shm", safe, fmt.Sprintf("mode=1777,size=%d", size))
	for name, to := range map[string]string{"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0",
		"stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		m.on("/dev", m.dir, func(place string) error { return os.Symlink(to, path.Join(place, name)) })
	}
	m.on("/tmp", func(at string) (*os.File, error) { return m.root.directory(at, 0o1777) },
		func(string) error { return nil })
}

// groups shows the job's control groups in place of the node's, so that programs find their limits.
func (m *mounter) groups() {
	own, _ := cgroup.Machine().Of("self") // a node without them has nothing to show
	for at, from := range own.Folders() {
		if from != at {
			m.bind(from, at, true)
		}
	}
}

// files writes the files by which programs find names.
func (m *mounter) files(p *plan) {
	for at, content := range p.Files {
		if m.err == nil {
			m.err = m.root.write(at, []byte(content), 0o644)
		}
	}
}

// own mounts what the guest needs.
func (m *mounter) own() {
	m.bind(guestCopy, guestProgram, true)
	m.bind(configCopy, "/.slipway/config.json", true)
	m.bind(linkFolder, "/.slipway/link", true)
	m.bind(spoolFolder, "/.slipway/spool", false)
}

// mounts mounts the home unless the session mounts one, then what it mounts, without what it must not see.
func (m *mounter) mounts(p *plan) {
	if !slices.ContainsFunc(p.Mounts, isHome) {
		m.bind(p.Home, session.Home, false)
	}
	for _, mount := range p.Mounts {
		m.bind(mount.Source, mount.Target, mount.ReadOnly)
	}
	for _, at := range p.Hidden {
		m.mount("tmpfs", at, unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=555,size=4k")
	}
}

func isHome(m session.Mount) bool { return filepath.Clean(m.Target) == session.Home }
