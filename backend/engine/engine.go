// Package engine defines what Slipway needs of something that runs containers: docker uses a real daemon, sim works
// inside this process. Package enginetest has the suite that both must pass.
package engine

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/moby/sys/atomicwriter"

	"slipway/backend/session"
	"slipway/gpu"
)

// Engine runs the containers of sessions. Code takes only the parts that it needs. All methods are safe for concurrent
// use and fail with a [session.Error]; without an answer of the daemon it is engine_connect_unavailable.
type Engine struct {
	Containers
	Monitor
	ImageStore
	Builder
	Transfers
	Networks
	Host
	Reservations
}

// Of returns the engine whose parts are all the same value.
func Of(e interface {
	Containers
	Monitor
	ImageStore
	Builder
	Transfers
	Networks
	Host
	Reservations
}) Engine {
	return Engine{e, e, e, e, e, e, e, e}
}

// Host describes the machine of an engine.
type Host interface {
	// Attachment says how devices are attached to containers, found by trying and cached; fresh tries again.
	Attachment(ctx context.Context, fresh bool) (Attachment, error)
	// Info describes the engine and the machine it runs on.
	Info(ctx context.Context) (Info, error)
	// Close releases connections. Containers keep running.
	Close() error
}

// Containers creates, runs and removes containers.
type Containers interface {
	// Create makes a container without starting it, adds the guest and, unless a mount is the home, a volume as the
	// home. A container with the same name and labels is returned as it is. Fails with engine_image_not-found,
	// engine_call_conflict, engine_call_invalid, disk_write_no-space.
	Create(ctx context.Context, c Container) (id string, err error)
	// Start starts a created container and returns when its init runs. A running container stays; engine_start_failed.
	Start(ctx context.Context, id string) error
	// Guest returns a connection to the guest of a started container, waiting for it until ctx ends. A container has
	// one such connection: a new one replaces it, also after a restart of this process. Fails with engine_guest_exited
	// if the container ended first, and with engine_create_unsupported where its guest does not work in its image.
	Guest(ctx context.Context, id string) (net.Conn, error)
	// Stop asks the container to end and kills it after grace. A stopped or removed container is no error.
	Stop(ctx context.Context, id string, grace time.Duration) error
	// Home returns the home of a container that has ended as a tar archive with names below "work/". The caller closes
	// it. Only a home that the engine made is read, no mount. engine_read_not-found.
	Home(ctx context.Context, id string) (io.ReadCloser, error)
	// Remove removes a container and its home volume, running or not. A removed container is no error.
	Remove(ctx context.Context, id string) error
}

// Monitor shows containers and reports their changes.
type Monitor interface {
	// List returns every container of this instance, running or not.
	List(ctx context.Context) ([]State, error)
	// Others returns the containers of other instances on this machine that hold devices and run or are about to.
	Others(ctx context.Context) ([]State, error)
	// Inspect returns one container; engine_read_not-found.
	Inspect(ctx context.Context, id string) (State, error)
	// Watch calls fn for each changed container of ours until ctx ends or the connection breaks; then it fails and the
	// caller lists again. fn gets the state as inspected after the change.
	Watch(ctx context.Context, fn func(State)) error
	// Stats returns one sample of each running container, by id. One that cannot be read is absent.
	Stats(ctx context.Context, ids []string) (map[string]Stats, error)
	// Logs returns what the container wrote to stdout and stderr, in order.
	Logs(ctx context.Context, id string, opts session.LogOptions) (io.ReadCloser, error)
}

// ImageStore lists, pulls, makes and removes images.
type ImageStore interface {
	// Images lists the images on this machine.
	Images(ctx context.Context) ([]session.Image, error)
	// Image returns one image; engine_image_not-found.
	Image(ctx context.Context, ref string) (session.Image, error)
	// Pull fetches an image and calls progress now and then, never concurrently. It reports whether the image is
	// private: the registry does not serve it without the login. The empty image is made, not fetched. Fails with
	// engine_pull_not-found, engine_pull_forbidden, engine_pull_unavailable or disk_write_no-space.
	Pull(ctx context.Context, ref string, login Login, progress func(session.Pull)) (private bool, err error)
	// Changed returns the size of a container's changes, without mounts and volumes; engine_read_not-found.
	Changed(ctx context.Context, id string) (gpu.Bytes, error)
	// Commit makes an image of a container's changes; a running one is paused meanwhile. The image starts what the
	// container's image starts. If ctx ends before it has its name, the image is discarded. Fails with
	// engine_read_not-found, image_commit_already-exists where another image has the name, and disk_write_no-space.
	Commit(ctx context.Context, id string, c Commit) (session.Image, error)
	// RemoveImage removes an image under all its names; engine_image_not-found, image_update_conflict if it is in use.
	RemoveImage(ctx context.Context, ref string) error
	// DiskUse returns the disk use of images, those without a name included.
	DiskUse(ctx context.Context) (session.ImageDisk, error)
}

// Login says with which registry login an image is pulled; zero: with none.
type Login struct {
	Own    *session.RegistryLogin // if it is for the image's registry; nil: none
	Stored bool                   // else the one that the agent's person has stored on the machine
}

// For returns the login of a person for a registry, nil if there is none.
func (l Login) For(server string) *session.RegistryLogin {
	if l.Own == nil || l.Own.Server != server {
		return nil
	}
	return l.Own
}

// Commit describes the image that is made of a container.
type Commit struct {
	Ref    string
	Origin session.ImageOrigin
}

// Builder builds images.
type Builder interface {
	// Build builds an image, which gets its name at the end, and calls progress now and then, never concurrently. What
	// was built before is not repeated. If ctx ends, the running step is ended. Fails with image_build_failed and what
	// the step said, disk_write_no-space, and engine_create_unsupported where images cannot be built.
	Build(ctx context.Context, b Build, progress func(session.Build)) (session.Image, error)
}

// NoBuilder is the [Builder] of an engine that builds no images.
type NoBuilder struct{}

func (NoBuilder) Build(context.Context, Build, func(session.Build)) (session.Image, error) {
	return session.Image{}, CannotBuild()
}

// CannotBuild is engine_create_unsupported of a machine whose engine builds no images.
func CannotBuild() error {
	return session.Because(session.CodeEngineUnsupported, session.FeatureBuild.Missing(),
		session.Say("lacksBuildHint")).Failure(nil)
}

// Build is what an image is built from.
type Build struct {
	Ref        string
	Context    func(ctx context.Context, to io.Writer) error // writes a tar archive
	Dockerfile string                                        // its name in the context
	Target     string                                        // stage; empty: the last
	Args       map[string]string
	Labels     map[string]string
	Secrets    []session.EnvVar        // that steps mount; no image, record or log has their values
	Logins     []session.RegistryLogin // with which the build pulls what is not on the machine
	// Proxy is an HTTP proxy on the loopback of this machine, whose network the steps then share; nil: none. No image,
	// record or log has its password. Fails with engine_create_unsupported where steps cannot share that network.
	Proxy *url.URL
}

// Transfers exports and imports images in parts, without a registry. Layers are named by the digests of their
// uncompressed archives, and transferred uncompressed.
type Transfers interface {
	// DescribeImage returns the parts of an image; engine_image_not-found.
	DescribeImage(ctx context.Context, ref string) (session.ImageParts, error)
	// PresentLayers returns how many of the first layers this machine has, so that they need not be transferred.
	PresentLayers(ctx context.Context, layers []session.ImageLayer) (int, error)
	// ExportImage calls fn once for each part that want accepts, one at a time, in any order. An error of fn ends it.
	ExportImage(ctx context.Context, id string, want func(part string) bool,
		fn func(part string, content io.Reader) error) error
	// ImportImage makes an image of its configuration and layers. content may lack those that PresentLayers counts. A
	// name of another image is image_update_conflict unless parts.Replace is set. Fails with image_update_invalid and
	// disk_write_no-space.
	ImportImage(ctx context.Context, parts session.ImageParts, content map[string]Content) (session.Image, error)
}

// Content is the content of one part of an image.
type Content struct {
	Size gpu.Bytes
	Open func() (io.ReadCloser, error) // the caller closes it
}

// Networks makes the private networks of sessions.
type Networks interface {
	// CreateNetwork makes a private network. One with the same name and labels is kept.
	CreateNetwork(ctx context.Context, n Network) error
	// RemoveNetwork removes a network. A removed one is no error.
	RemoveNetwork(ctx context.Context, name string) error
}

// Network is a private network: its containers reach the outside but no other private network. They find each other by
// host name unless Apart is set.
type Network struct {
	Name   string
	Labels map[string]string
	Apart  bool // its containers do not reach each other
}

// Attachment says how devices are attached to containers.
type Attachment struct {
	Way       AttachWay
	HardLimit bool      // the toolkit applies a memory limit through the driver
	MPS       bool      // a Multi-Process Service runs on this machine and takes clients
	Tried     []Attempt // in order, the chosen one last
}

// AttachWay is a way to attach NVIDIA devices. AMD and Intel devices are always attached by their device nodes.
type AttachWay string

// The ways, best first.
const (
	AttachCDI     AttachWay = "cdi"
	AttachRequest AttachWay = "device-request"
	AttachRuntime AttachWay = "runtime"
	AttachSim     AttachWay = "sim"
	AttachSlurm   AttachWay = "slurm" // Slurm gives jobs their devices
	AttachNone    AttachWay = "none"
)

// Attempt is a way that was tried and why it was not chosen.
type Attempt struct {
	Way    AttachWay
	Text   string
	Remedy string // one command or sentence
}

// Info describes an engine.
type Info struct {
	Name        string // "docker", "podman", "sim" or "slurm"
	Version     string
	CPUs        int
	Memory      gpu.Bytes
	OS          string
	Arch        string
	DataRoot    string // where the engine keeps its data, if it is on this machine
	Socket      string // by which the engine is driven, if it is one of this machine
	Cgroup      int    // version of the cgroup hierarchy, 1 or 2
	Warnings    []session.Warning
	LiveRestore bool // containers outlive a restart of the engine
	// Elsewhere: containers run on other computers. They outlive a restart of this one and a time without an answer of
	// the engine, and their file systems have device numbers of their own.
	Elsewhere bool
	Lacks     []session.Feature  // what it cannot do for sessions
	Slurm     *session.SlurmSite // nil: Slurm has nothing to do with it
	Checks    []session.Check    // what it found out about those other computers
}

// Container is everything that an engine needs to create one kernel.
type Container struct {
	Name      string // slipway-<session>-<kernel>-<attempt>
	Hostname  string
	Image     string
	Labels    map[string]string // from [Labels]
	Guest     GuestConfig
	CPUs      []int     // cpuset; their number is the CPU limit
	Memory    gpu.Bytes // limit, no swap
	Shm       gpu.Bytes
	Processes int             // most processes and threads; 0: no limit
	Mounts    []session.Mount // targets absolute
	Hidden    []string        // absolute paths inside of mounts at which nothing is seen
	Network   string          // private network to join; empty: the engine's own
	Devices   []gpu.Device    // to hand in, addressed by UUID
	Grants    []gpu.Grant     // what is granted of them
	MPS       bool            // a person opted in to sharing parts of devices through MPS
}

// Wanted is a session that may start now, where another scheduler has the resources. Its image is on the machine.
type Wanted struct {
	// Session is in the record as PENDING, with the attempt before this one. Attempt is that of the containers.
	Session session.Session
	// Kernels is what the engine will be asked to create, complete but for CPUs, devices, grants and their labels,
	// which are those of the placement.
	Kernels []Container
}

// GuestConfig is the guest's configuration. It may hold secrets, so it is delivered as a file that only the container's
// root reads, never by environment or arguments.
type GuestConfig struct {
	Session session.ID `json:"session"`
	Kernel  string     `json:"kernel"`
	UID     int        `json:"uid"` // of the work user: the person who runs the agent
	GID     int        `json:"gid"`
	GuestUser
	Env []session.EnvVar `json:"env"` // SLIPWAY_*, threads and the person's own
	// variables that count unless the image or Env sets them
	Defaults []session.EnvVar `json:"defaults,omitempty"`
	Command  string           `json:"command"`          // startup command of a batch session; "" otherwise
	Setup    string           `json:"setup,omitempty"`  // script that runs first; "": none
	Server   *Server          `json:"server,omitempty"` // of an inference session; nil: none
	Ports    []int            `json:"ports"`
	Cluster  *Cluster         `json:"cluster,omitempty"` // nil: the session has one kernel
	Pins     []Pin            `json:"pins,omitempty"`
	// other users have the container's network, so what the guest starts does not listen on ports
	Shared bool `json:"shared,omitempty"`
	// the guest waits until the agent sends the configuration of a session; all but the ids and the user is empty
	Waits bool `json:"waits,omitempty"`
}

// GuestUser describes the work user, besides its ids.
type GuestUser struct {
	// the person is root in the container and keeps what a package manager needs; UID and GID are 0, without mounts
	Admin  bool              `json:"admin,omitempty"`
	Groups []int             `json:"groups,omitempty"` // further ones, set by the engine for its devices
	Author session.GitAuthor `json:"author,omitzero"`  // of commits, where nothing else says it
}

// Server is a program that the guest runs without a shell, and with which the container ends. Without Argv, the engine
// fills in the ENTRYPOINT, CMD and WORKDIR of the image.
type Server struct {
	Argv    []string              `json:"argv"`
	Dir     string                `json:"dir,omitempty"`     // empty: the home
	Actions []session.StartAction `json:"actions,omitempty"` // before it starts
}

// Pin identifies the source of a mount. The guest compares it before it starts anything, because the path may have
// changed since the engine resolved it.
type Pin struct {
	Target string `json:"target"`
	Device uint64 `json:"device,omitempty"` // of its file system; 0: not compared, because it differs by computer
	Inode  uint64 `json:"inode"`
}

// Cluster lets the kernels of one session reach each other by ssh, with keys made for the session.
type Cluster struct {
	Self    string   `json:"self"`    // host name of this kernel, one of Hosts
	Hosts   []string `json:"hosts"`   // of all kernels: main1, sub1 …
	Port    int      `json:"port"`    // where each of them takes ssh; 0: 2222
	HostKey string   `json:"hostKey"` // private key that all kernels answer with, PEM
	UserKey string   `json:"userKey"` // private key of the work user, PEM
}

// ExitUnsafe is the exit code of a guest that a link of its image leads away. The log's last line says which.
const ExitUnsafe = 123

// State is the state of one container.
type State struct {
	ID         string
	Name       string
	Labels     map[string]string
	Running    bool
	Created    bool      // created and never started
	Gone       bool      // removed by somebody; only Watch tells of it, with id, name and labels and nothing else
	ExitCode   int       // valid when neither Running nor Created
	OOMKilled  bool      // the kernel killed a process of it for memory
	Error      string    // what the engine says of a failed start
	Taken      *Taken    // why the engine ended it, at a time limit for example; nil: it ended by itself or was stopped
	CreatedAt  time.Time // by the engine's clock
	StartedAt  time.Time
	FinishedAt time.Time
}

// Taken says why an engine ended a container without being asked to.
type Taken struct {
	Reason session.Reason
	Cause  *session.Cause
	// Again: another scheduler will give its resources later. The container is removed, and the session waits again.
	Again bool
}

// Stats is one sample of a container. All but Memory, MemLimit and Pids are counters.
type Stats struct {
	At        time.Time
	CPU       time.Duration // CPU time used
	Memory    gpu.Bytes     // working set
	MemLimit  gpu.Bytes
	NetRx     gpu.Bytes
	NetTx     gpu.Bytes
	DiskRead  gpu.Bytes
	DiskWrite gpu.Bytes
	Pids      int
	OOMKills  int // processes killed for memory so far
}

// The labels on every container, enough to adopt it without a record.
const (
	LabelSession  = "slipway.session" // session id
	LabelKernel   = "slipway.kernel"  // main1 …
	LabelAttempt  = "slipway.attempt"
	LabelOwner    = "slipway.owner"
	LabelAgent    = "slipway.agent"    // name of the agent
	LabelInstance = "slipway.instance" // random id of the agent's data folder: whose container this is
	LabelGrants   = "slipway.grants"   // JSON of session.Grants
	LabelName     = "slipway.name"     // session name at creation
	LabelFolders  = "slipway.folders"  // JSON of a list of session.FolderMount; none: no label
)

// ContainerLabels are all of them. Containers get every one, if need be empty, so that none comes from the image.
var ContainerLabels = []string{
	LabelSession, LabelKernel, LabelAttempt, LabelOwner, LabelAgent, LabelInstance, LabelGrants, LabelName,
	LabelFolders,
}

// Unavailable reports whether a call failed because the engine does not answer.
func Unavailable(err error) bool { return session.CodeOf(err) == session.CodeEngineUnavailable }

// Within calls fn with a time limit of its own. If the limit ends the call, the error is engine_call_timeout.
func Within(ctx context.Context, limit time.Duration, what string, fn func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := fn(limited)
	if err != nil && ctx.Err() == nil && (errors.Is(limited.Err(), context.DeadlineExceeded) ||
		errors.Is(err, context.DeadlineExceeded)) {
		return session.WrapError(err, session.CodeEngineTimeout,
			"The container engine did not finish within "+limit.String()+" ("+what+").",
			"Look at the engine's log; it may be overloaded.")
	}
	return err
}

// Ask is [Within] for a call that answers with a value.
func Ask[T any](ctx context.Context, limit time.Duration, what string,
	fn func(context.Context) (T, error)) (value T, err error) {
	err = Within(ctx, limit, what, func(ctx context.Context) (err error) {
		value, err = fn(ctx)
		return err
	})
	return value, err
}

// ReplaceFile replaces a file atomically. It does not sync: launches would wait, and a crash is reconciled anyway.
func ReplaceFile(path string, data []byte) error {
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// LinkFile makes a hard link to a file in place of another one, or a copy with that mode where a link fails.
func LinkFile(from, to string, mode fs.FileMode) error {
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if os.Link(from, to) == nil {
		return nil
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return atomicwriter.WriteFile(to, data, mode)
}

// Check reports what no engine takes in the description of a container: engine_call_invalid.
func (c Container) Check() error {
	invalid := func(message string) error { return session.NewError(session.CodeEngineInvalid, message, "") }
	switch {
	case c.Name == "":
		return invalid("A container needs a name.")
	case c.Image == "":
		return invalid("A container needs an image.")
	case c.Memory < 0 || c.Shm < 0:
		return invalid("Memory and shared memory cannot be negative.")
	case c.Labels[LabelInstance] == "":
		return invalid("A container needs the label " + LabelInstance + ".")
	case c.Guest.Admin && (len(c.Mounts) > 0 || c.MPS):
		return invalid("A container whose person is root cannot have mounts or MPS.")
	}
	taken := map[string]bool{}
	for _, m := range c.Mounts {
		target := path.Clean(m.Target)
		switch {
		case !strings.HasPrefix(m.Target, "/") || !filepath.IsAbs(m.Source):
			return invalid("The mount " + m.Source + " → " + m.Target + " needs absolute paths.")
		case taken[target]: // an engine would say so too, and leave volumes behind
			return invalid("Two mounts on " + target + " cannot both be seen.")
		}
		taken[target] = true
	}
	return nil
}
