package node

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// Spec is what the runner needs to know of a session, apart from the guests' configuration.
type Spec struct {
	Session session.ID `json:"session"`
	Attempt int        `json:"attempt"`
	// a batch command that began is not begun again by a repeated start, see [Restarted]
	Batch   bool     `json:"batch,omitempty"`
	Kernels []string `json:"kernels"`         // main1, sub1 …, in the order of the job's tasks
	Store   string   `json:"store"`           // shared folder of layers, <hex>.tar each, uncompressed
	Layers  []string `json:"layers"`          // digests (sha256:…) of the uncompressed archives, lowest first
	Local   string   `json:"local,omitempty"` // folder of the node; empty: /tmp/slipway-<uid>
	Runner  Runner   `json:"runner,omitempty"`
	Box
}

// Box describes the container of each kernel.
type Box struct {
	Env       []session.EnvVar `json:"env,omitempty"` // of the image
	Mounts    []session.Mount  `json:"mounts,omitempty"`
	Hidden    []string         `json:"hidden,omitempty"`    // absolute paths inside of mounts at which nothing is seen
	Shm       gpu.Bytes        `json:"shm,omitempty"`       // size of /dev/shm; 0: 64 MiB
	Processes int              `json:"processes,omitempty"` // most processes and threads; 0: no limit
	// device nodes below /dev. The job's control group decides which of them work; those that do not exist are skipped
	Devices []string `json:"devices,omitempty"`
	// a network of its own, with the outside if the node has slirp4netns or pasta. Otherwise the node's network
	Private bool `json:"private,omitempty"`
}

// Meeting says where a kernel's guest is reached.
type Meeting struct {
	Host    string    `json:"host"`
	Port    int       `json:"port"`
	Secret  string    `json:"secret"` // 64 hexadecimal digits
	Socket  string    `json:"socket"` // path of the relay's socket on the node
	PID     int       `json:"pid"`    // of the runner
	Job     string    `json:"job"`
	Started time.Time `json:"started"`
}

// Begun says that the container of a kernel was about to start.
type Begun struct {
	Job      string    `json:"job"`
	Restarts int       `json:"restarts"` // as Slurm counts them
	Host     string    `json:"host"`
	At       time.Time `json:"at"`
}

// Exit says how a kernel ended.
type Exit struct {
	Code      int       `json:"code"`
	OOMKilled bool      `json:"oomKilled,omitempty"` // the kernel killed a process of the job for memory
	Started   time.Time `json:"started"`             // zero: the guest did not start
	Ended     time.Time `json:"ended"`
	Host      string    `json:"host"`
	Job       string    `json:"job"`
	Why       Why       `json:"why,omitempty"`
}

// Why says why a container did not start although nothing failed.
type Why string

// Restarted means that the job was started again after its batch command had begun.
const Restarted Why = "restarted"

// Runner is what makes the containers of a run on its nodes.
type Runner string

// The runners.
const (
	Own       Runner = ""          // this program, in user namespaces
	Apptainer Runner = "apptainer" // where a site forbids those
)

// Probe says what works on a node. It is what slipway-guest probe writes.
type Probe struct {
	Host string `json:"host"`
	Port int    `json:"port"` // where it waits for a connection
	// why this program, or Apptainer, makes no containers; empty: it does
	OwnReason       string `json:"ownReason,omitempty"`
	ApptainerReason string `json:"apptainerReason,omitempty"`
	// program that joins private networks to the outside; empty: none, or it failed for a reason
	Network       string `json:"network,omitempty"`
	NetworkReason string `json:"networkReason,omitempty"`
	MemoryGroup   bool   `json:"memoryGroup"` // there is a control group for memory
	CPUGroup      bool   `json:"cpuGroup"`    // and one for CPUs
}

// Runner returns the best runner that works, false if none does.
func (p Probe) Runner() (Runner, bool) {
	if p.OwnReason != "" && p.ApptainerReason == "" {
		return Apptainer, true
	}
	return Own, p.OwnReason == ""
}

// ReadProbe reads what slipway-guest probe has written. The error is fs.ErrNotExist until it has.
func ReadProbe(path string) (Probe, error) { return read(path, maxRecord, Probe.check) }

// CodeFailed is the exit code of a runner that could not make the container. The last line of the log says why.
const CodeFailed = 125

// Names of the files of a run.
const (
	SpecFile    = "spec.json"
	guestSuffix = ".guest.json"
	homeFolder  = "home"
)

// GuestFile returns the path of a kernel's guest configuration.
func GuestFile(dir, kernel string) string { return filepath.Join(dir, kernel+guestSuffix) }

func begunFile(dir, kernel string) string   { return filepath.Join(dir, kernel+".begun") }
func meetingFile(dir, kernel string) string { return filepath.Join(dir, kernel+".meeting") }
func exitFile(dir, kernel string) string    { return filepath.Join(dir, kernel+".exit") }
func logFile(dir, kernel string) string     { return filepath.Join(dir, kernel+".log") }

// The sizes of files of a run, in bytes, that are still read.
const (
	maxSpec   = 4 << 20
	maxRecord = 16 << 10
	maxGuest  = 16 << 20
)

// ReadMeeting returns the meeting of a kernel. The error is fs.ErrNotExist while its guest does not run.
func ReadMeeting(dir, kernel string) (Meeting, error) {
	return read(meetingFile(dir, kernel), maxRecord, Meeting.check)
}

// ReadBegun returns when a kernel began. The error is fs.ErrNotExist if it did not.
func ReadBegun(dir, kernel string) (Begun, error) {
	return read(begunFile(dir, kernel), maxRecord, Begun.check)
}

// ReadExit returns how a kernel ended. The error is fs.ErrNotExist if it has not.
func ReadExit(dir, kernel string) (Exit, error) {
	return read(exitFile(dir, kernel), maxRecord, Exit.check)
}

// read reads a record and checks it.
func read[T any](path string, most int64, check func(T) error) (value T, err error) {
	file, err := os.Open(path)
	if err != nil {
		return value, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	switch {
	case err != nil:
		return value, err
	case int64(len(data)) > most:
		return value, fmt.Errorf("%s is larger than %d bytes", path, most)
	}
	var record T
	if err := json.Unmarshal(data, &record); err != nil {
		return value, fmt.Errorf("read %s: %w", path, err)
	}
	if err := check(record); err != nil {
		return value, fmt.Errorf("read %s: %w", path, err)
	}
	return record, nil
}

// words match names of kernels, hosts and jobs. None of them leads out of a folder.
var (
	kernelName = regexp.MustCompile(`^[a-z0-9]{1,32}$`)
	sessionID  = regexp.MustCompile(`^[a-z0-9]{1,32}$`)
	hostName   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,252})$`)
	jobName    = regexp.MustCompile(`^[A-Za-z0-9_+.-]{0,64}$`)
	layerName  = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	deviceName = regexp.MustCompile(`^/dev/[A-Za-z0-9][A-Za-z0-9_.-]*(/[A-Za-z0-9][A-Za-z0-9_.-]*){0,3}$`)
)

const (
	maxLayers  = 127
	maxKernels = 1024
)

func (s Spec) check() error {
	switch {
	case !sessionID.MatchString(string(s.Session)) || s.Attempt < 0:
		return errors.New("a run needs a session and an attempt")
	case len(s.Kernels) == 0 || len(s.Kernels) > maxKernels || !all(s.Kernels, kernelName.MatchString):
		return errors.New("a run needs kernels with plain names")
	case len(s.Layers) > maxLayers || !all(s.Layers, layerName.MatchString):
		return errors.New("layers must be at most 127 digests")
	case s.Runner != Own && s.Runner != Apptainer:
		return errors.New("this runner is unknown")
	case len(s.Layers) > 0 && !filepath.IsAbs(s.Store) || s.Local != "" && !filepath.IsAbs(s.Local):
		return errors.New("folders must be absolute paths")
	}
	return s.Box.check()
}

func (b Box) check() error {
	switch {
	case !all(b.Mounts, func(m session.Mount) bool { return plainPath(m.Source) && plainPath(m.Target) }):
		return errors.New("mounts must be absolute paths")
	case !all(b.Hidden, plainPath):
		return errors.New("hidden paths must be absolute")
	case !all(b.Devices, deviceName.MatchString):
		return errors.New("devices must be below /dev")
	case !all(b.Env, func(v session.EnvVar) bool {
		return v.Name != "" && !strings.ContainsAny(v.Name, "=\x00") && !strings.Contains(v.Value, "\x00")
	}):
		return errors.New("variables need names")
	case b.Shm < 0 || b.Processes < 0:
		return errors.New("sizes cannot be negative")
	}
	return nil
}

func plainPath(path string) bool { return filepath.IsAbs(path) && !strings.Contains(path, "\x00") }

func all[T any](list []T, ok func(T) bool) bool {
	return !slices.ContainsFunc(list, func(item T) bool { return !ok(item) })
}

func (m Meeting) check() error {
	secret, err := hex.DecodeString(m.Secret)
	switch {
	case !hostName.MatchString(m.Host) || m.Port < 1 || m.Port > 65535:
		return errors.New("a meeting needs a host and a port")
	case err != nil || len(secret) != secretSize:
		return errors.New("a meeting needs a secret")
	case !plainPath(m.Socket):
		return errors.New("a meeting needs a socket")
	case !jobName.MatchString(m.Job):
		return errors.New("a meeting needs a job")
	}
	return nil
}

func (p Probe) check() error {
	if !hostName.MatchString(p.Host) || p.Port < 1 || p.Port > 65535 {
		return errors.New("a probe needs a host and a port")
	}
	return nil
}

func (b Begun) check() error {
	if !hostName.MatchString(b.Host) || !jobName.MatchString(b.Job) || b.Restarts < 0 {
		return errors.New("a start needs a host and a job")
	}
	return nil
}

func (e Exit) check() error {
	switch {
	case !hostName.MatchString(e.Host) || !jobName.MatchString(e.Job):
		return errors.New("an end needs a host and a job")
	case e.Code < 0 || e.Code > 255:
		return errors.New("an exit code is a number from 0 to 255")
	case e.Why != "" && e.Why != Restarted:
		return errors.New("an end has an unknown reason")
	}
	return nil
}
