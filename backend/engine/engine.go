// Package engine says what Slipway needs of something that runs containers. Sub-packages named by technology do it:
// docker on a real daemon, sim inside this process. enginetest holds the suite that each of them must pass.
package engine

import (
	"context"
	"io"
	"net"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// Engine runs the containers of sessions, in parts: code takes the parts that it needs. All methods are safe for
// concurrent use and fail with a [session.Error]. A daemon that does not answer is engine_connect_unavailable from
// every method.
type Engine struct {
	Containers
	Monitor
	ImageStore
	Transfers
	Networks
	Host
}

// Of returns the engine whose parts are all the same value.
func Of(e interface {
	Containers
	Monitor
	ImageStore
	Transfers
	Networks
	Host
}) Engine {
	return Engine{e, e, e, e, e, e}
}

// Host describes the machine of an engine.
type Host interface {
	// Attachment says how devices are handed to containers, as it was found by trying. It is remembered; fresh asks to
	// try again.
	Attachment(ctx context.Context, fresh bool) (Attachment, error)
	// Info describes the engine and the machine it runs on.
	Info(ctx context.Context) (Info, error)
	// Close releases connections. Containers go on.
	Close() error
}

// Containers creates, runs and removes containers.
type Containers interface {
	// Create makes a container without starting it, delivers the guest into it and prepares its home volume. The name
	// in c is unique: a container of that name that is there already, with the same labels, is returned as it is. Fails
	// with engine_image_not-found, engine_call_conflict, engine_call_invalid, disk_write_no-space.
	Create(ctx context.Context, c Container) (id string, err error)
	// Start starts a created container and returns when its init runs. Starting a running container does nothing.
	// engine_start_failed.
	Start(ctx context.Context, id string) error
	// Guest returns a connection to the guest of a started container, waiting for it until ctx ends. A container has
	// one such connection at a time; asking again after a loss, or after a restart of this process, gives a fresh one.
	// Fails with engine_guest_exited if the container ended first, and with engine_create_unsupported where its guest
	// would not work in its image.
	Guest(ctx context.Context, id string) (net.Conn, error)
	// Stop asks the container to end and kills it after grace. Stopping what is stopped or gone does nothing.
	Stop(ctx context.Context, id string, grace time.Duration) error
	// Remove removes a container and its home volume, running or not. Removing what is gone does nothing.
	Remove(ctx context.Context, id string) error
}

// Monitor shows containers and tells of their changes.
type Monitor interface {
	// List returns every container with our labels that belongs to instance, running or not.
	List(ctx context.Context) ([]State, error)
	// Others returns the containers on this machine that carry our labels, belong to other instances, hold devices, and
	// run or are about to.
	Others(ctx context.Context) ([]State, error)
	// Inspect returns one container; engine_read_not-found.
	Inspect(ctx context.Context, id string) (State, error)
	// Watch calls fn for each container of ours that changes until ctx ends or the connection breaks, in which case it
	// fails and the caller lists anew. fn gets the state as inspected after the change.
	Watch(ctx context.Context, fn func(State)) error
	// Stats returns one sample of each running container asked for, keyed by id. One that cannot be read is absent.
	Stats(ctx context.Context, ids []string) (map[string]Stats, error)
	// Logs returns what the container wrote, stdout and stderr in order.
	Logs(ctx context.Context, id string, opts session.LogOptions) (io.ReadCloser, error)
}

// ImageStore lists, pulls, makes and removes images.
type ImageStore interface {
	// Images lists what is there.
	Images(ctx context.Context) ([]session.Image, error)
	// Image returns one image; engine_image_not-found if it is not there.
	Image(ctx context.Context, ref string) (session.Image, error)
	// Pull fetches an image, calling progress now and then, never concurrently. Without logins it asks as anybody
	// could; with them it uses the registry logins of the agent's person, and says of an image that cannot be had
	// without that it is private. Fails with engine_pull_not-found, engine_pull_forbidden, engine_pull_unavailable or
	// disk_write_no-space. Cancelling ctx stops it.
	Pull(ctx context.Context, ref string, logins bool, progress func(session.Pull)) (private bool, err error)
	// Changed says how much a container has changed of its image; mounts and volumes do not count.
	// engine_read_not-found.
	Changed(ctx context.Context, id string) (gpu.Bytes, error)
	// Commit makes an image of what a container has changed, running or not: one
	// that runs is paused meanwhile. The image starts what the container's own
	// image starts. It has its name as soon as it is whole; when ctx ends before
	// that there is no such image, now or later.
	// Fails with engine_read_not-found, image_commit_already-exists where the
	// name is another image's, and disk_write_no-space.
	Commit(ctx context.Context, id string, c Commit) (session.Image, error)
	// RemoveImage removes an image under all its names; engine_image_not-found, or image_update_conflict where a
	// container uses it.
	RemoveImage(ctx context.Context, ref string) error
	// DiskUse says what images take, those without a name included.
	DiskUse(ctx context.Context) (session.ImageDisk, error)
}

// Commit says what an image that is made of a container shall be called, and what it tells of itself.
type Commit struct {
	Ref    string
	Origin session.ImageOrigin
}

// Transfers gives images away in parts and puts them together again, where no registry is reached. Layers are named by
// the digests of their uncompressed archives, and that is the content that goes either way.
type Transfers interface {
	// DescribeImage says what an image is made of; engine_image_not-found.
	DescribeImage(ctx context.Context, ref string) (session.ImageParts, error)
	// PresentLayers returns how many of the first layers an image on this machine has as well, so that they need not be
	// brought.
	PresentLayers(ctx context.Context, layers []session.ImageLayer) (int, error)
	// ExportImage calls fn once for each part that want wants, one after the other, in whatever order the engine has
	// them. An error of fn ends it.
	ExportImage(ctx context.Context, id string, want func(part string) bool,
		fn func(part string, content io.Reader) error) error
	// ImportImage puts an image together of its configuration and its layers.
	// Those that PresentLayers counts may be absent from content. A name that is
	// another image's stays that one's, and it is image_update_conflict, unless
	// parts say to replace it.
	// Fails with image_update_invalid and disk_write_no-space.
	ImportImage(ctx context.Context, parts session.ImageParts, content map[string]Content) (session.Image, error)
}

// Content is the content of one part of an image.
type Content struct {
	Size gpu.Bytes
	Open func() (io.ReadCloser, error) // the caller closes it
}

// Networks makes the private networks of sessions.
type Networks interface {
	// CreateNetwork makes a private network. One of that name with the same labels is left as it is.
	CreateNetwork(ctx context.Context, n Network) error
	// RemoveNetwork removes a network. Removing what is gone does nothing.
	RemoveNetwork(ctx context.Context, name string) error
}

// Network is a private network: its containers reach the outside, and those of other networks do not reach them. They
// find each other by host name, unless the network keeps them apart as well.
type Network struct {
	Name   string
	Labels map[string]string
	Apart  bool // its containers do not reach each other
}

// Attachment says how devices get into containers.
type Attachment struct {
	Way       AttachWay
	HardLimit bool      // the toolkit applies a memory limit through the driver
	MPS       bool      // a Multi-Process Service runs on this machine and takes clients
	Tried     []Attempt // in order, the chosen one last
}

// AttachWay is a way of handing NVIDIA devices to a container. AMD and Intel devices always go by their device nodes.
type AttachWay string

// The ways, best first.
const (
	AttachCDI     AttachWay = "cdi"
	AttachRequest AttachWay = "device-request"
	AttachRuntime AttachWay = "runtime"
	AttachSim     AttachWay = "sim"
	AttachNone    AttachWay = "none"
)

// Attempt is one way that was tried and why it was not taken.
type Attempt struct {
	Way    AttachWay
	Text   string
	Remedy string // one command or sentence
}

// Info describes an engine.
type Info struct {
	Name     string // "docker" or "sim"
	Version  string
	CPUs     int
	Memory   gpu.Bytes
	OS       string
	Arch     string
	DataRoot string // where the engine keeps its data, if it is on this machine
	Socket   string // by which the engine is driven, if it is one of this machine
	Cgroup   int    // version of the cgroup hierarchy, 1 or 2
	Warnings []session.Warning
	// LiveRestore reports that containers outlive a restart of the engine.
	LiveRestore bool
}

// Container is everything an engine needs to create one kernel.
type Container struct {
	Name     string // slipway-<session>-<kernel>-<attempt>
	Hostname string
	Image    string
	Labels   map[string]string // from [Labels]
	Guest    GuestConfig
	CPUs     []int     // cpuset; their number is the CPU limit
	Memory   gpu.Bytes // limit, no swap
	Shm      gpu.Bytes
	// Processes is the most processes and threads in it; 0: no limit.
	Processes int
	Mounts    []session.Mount // targets absolute
	Hidden    []string        // absolute paths inside of mounts at which nothing is seen
	Network   string          // private network to join; empty: the engine's own
	Devices   []gpu.Device    // to hand in, addressed by UUID
	Grants    []gpu.Grant     // what is granted of them
	MPS       bool            // a person opted in to sharing parts of devices through MPS
}

// GuestConfig is what the guest is told when its container is created. It is delivered as a file that only root of the
// container reads, never by environment or arguments, since it may hold secrets.
type GuestConfig struct {
	Session session.ID `json:"session"`
	Kernel  string     `json:"kernel"`
	UID     int        `json:"uid"` // of the work user: the person who runs the agent
	GID     int        `json:"gid"`
	// further groups of the work user, set by the engine for its devices
	Groups  []int            `json:"groups,omitempty"`
	Env     []session.EnvVar `json:"env"`     // complete: SLIPWAY_*, threads and the person's own
	Command string           `json:"command"` // startup command of a batch session; "" otherwise
	Ports   []int            `json:"ports"`
	Cluster *Cluster         `json:"cluster,omitempty"` // nil: the session has one kernel
	Pins    []Pin            `json:"pins,omitempty"`
}

// Pin says what a mount must show. The guest compares it before it starts anything, because the path that the engine
// followed may have been bent meanwhile.
type Pin struct {
	Target string `json:"target"`
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
}

// Cluster lets the kernels of one session reach each other by ssh. Every kernel has the same keys; they are made for
// the one session and end with it.
type Cluster struct {
	Self    string   `json:"self"`    // host name of this kernel, one of Hosts
	Hosts   []string `json:"hosts"`   // of all kernels: main1, sub1 …
	Port    int      `json:"port"`    // where each of them takes ssh; 0: 2222
	HostKey string   `json:"hostKey"` // private key that all kernels answer with, PEM
	UserKey string   `json:"userKey"` // private key of the work user, PEM
}

// ExitUnsafe is the exit code of a guest that does not work in the container's image, because a link of the image leads
// it away. The last line of the log says which.
const ExitUnsafe = 123

// State is what an engine knows of one container.
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
	CreatedAt  time.Time // by the engine's clock
	StartedAt  time.Time
	FinishedAt time.Time
}

// Stats is one sample of a container. All but Memory, MemLimit and Pids are counters that grow over its life.
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

// The labels on every container. They are enough to adopt it without a record.
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

// ContainerLabels are all of them. An engine gives a container each of them, empty where there is nothing to say, so
// that none of its image's takes their place.
var ContainerLabels = []string{
	LabelSession, LabelKernel, LabelAttempt, LabelOwner, LabelAgent, LabelInstance, LabelGrants, LabelName,
	LabelFolders,
}
