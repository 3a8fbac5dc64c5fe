package nvml

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"slipway/gpu"
)

type trouble struct {
	avoided   []avoided
	failures  int       // children that failed in a row without an answer
	notBefore time.Time // when the next child may be started
	reason    *gpu.Error
	strange   int      // samples in a row whose processes were all unknown here
	left      []*child // killed, but hanging in the kernel
}

// avoided is a call, or a whole device, on which a child died or hung.
type avoided struct {
	omission
	why   string
	until time.Time
	times int
}

// Limits of the patience with the driver.
const (
	firstPause   = 250 * time.Millisecond
	longestPause = 30 * time.Second
	firstAvoid   = 30 * time.Second
	longestAvoid = 10 * time.Minute
	// attempts is how many children one question may cost: each that fails in a call for one device shows what to omit.
	attempts = 4
	// mostLeft is how many children may hang in the kernel before no more are started.
	mostLeft = 3
)

// ask puts one question to the child, starting it if needed, and again without what it failed on. It fails with a
// *gpu.Error, or ctx's error.
func (s *Source) ask(ctx context.Context, r request) (answer, error) {
	if s.isAbsent() {
		return answer{}, nil
	}
	for range attempts {
		if wait := time.Until(s.notBefore); wait > 0 && s.reason != nil {
			return answer{}, &gpu.Error{Code: s.reason.Code, Message: s.reason.Message,
				Hint: s.reason.Hint + " Next try in " + span(wait) + "."}
		}
		if err := s.ready(); err != nil {
			return answer{}, s.giveUp(err)
		}
		s.nextID++
		r.ID, r.Omit = s.nextID, s.omissions()
		a, err := s.child.ask(ctx, r, s.config.Patience)
		if ctx.Err() != nil && err != nil {
			return answer{}, ctx.Err()
		}
		if err != nil {
			if problem := s.bury(err); problem != nil {
				return answer{}, problem
			}
			continue
		}
		if a.Fault != nil {
			return answer{}, s.faulty(*a.Fault)
		}
		s.failures, s.reason = 0, nil
		return a, nil
	}
	return answer{}, s.giveUp(unavailable("The NVIDIA driver keeps failing.", tryNvidiaSMI))
}

func (s *Source) ready() *gpu.Error {
	if s.child != nil && s.child.alive() {
		return nil
	}
	s.drop()
	s.left = slices.DeleteFunc(s.left, func(k *child) bool { return !k.alive() })
	if len(s.left) >= mostLeft {
		message := fmt.Sprintf("The NVIDIA driver hangs: %d readers of its devices cannot be ended.", len(s.left))
		return unavailable(message, "Restart the computer.")
	}
	c, err := start(s.config)
	if err != nil {
		return &gpu.Error{Code: gpu.CodeSourceNotSupported,
			Message: "The reader of NVIDIA devices cannot be started: " + err.Error() + ".",
			Hint:    "Reinstall Slipway."}
	}
	s.child = c
	return nil
}

func (s *Source) drop() {
	if s.child == nil {
		return
	}
	if !s.child.end() {
		s.left = append(s.left, s.child)
	}
	s.child = nil
}

// bury ends a child that died or hung and omits the call from then on, or the device when the child hung or the device
// failed twice. It returns an error when there is nothing to omit, so that the next try would fail, too.
func (s *Source) bury(failure error) error {
	_, call, device := lastCall(s.child.box)
	why := s.child.obituary(failure, call)
	s.drop()
	s.config.Log.Warn("the reader of NVIDIA devices was replaced", "why", why, "device", device)
	if device == "" {
		return s.giveUp(unavailable("NVIDIA devices cannot be read: "+why+".", tryNvidiaSMI))
	}
	omit := omission{Device: device, Call: call}
	again := slices.ContainsFunc(s.avoided, func(a avoided) bool {
		return a.Device == device && time.Now().Before(a.until)
	})
	if errors.Is(failure, errHang) || again {
		omit.Call = ""
	}
	s.avoid(omit, why)
	return nil
}

func (s *Source) avoid(o omission, why string) {
	i := slices.IndexFunc(s.avoided, func(a avoided) bool { return a.omission == o })
	if i < 0 {
		i = len(s.avoided)
		s.avoided = append(s.avoided, avoided{omission: o})
	}
	a := &s.avoided[i]
	a.until = time.Now().Add(min(longestAvoid, firstAvoid<<min(a.times, 8)))
	a.times++
	a.why = why
}

func (s *Source) omissions() (now []omission) {
	for _, a := range s.avoided {
		if time.Now().Before(a.until) {
			now = append(now, a.omission)
		}
	}
	return now
}

func (s *Source) why(l loss) string {
	if a, found := s.avoids(l); found {
		return a.why + "; it is asked again in " + span(time.Until(a.until))
	}
	return "it is skipped for a while"
}

func (s *Source) avoids(l loss) (avoided, bool) {
	for _, a := range s.avoided {
		if a.Device == l.Device && (a.Call == "" || a.Call == l.Call) && time.Now().Before(a.until) {
			return a, true
		}
	}
	return avoided{why: "the driver does not answer for it"}, false
}

// faulty ends the child after a failure of the whole library, because what it loaded stays in it: a driver that was
// updated needs another child.
func (s *Source) faulty(f fault) error {
	s.drop()
	if (f.Code == codeNoFile || f.Code == codeNoCgo) && s.config.Library == "" && !s.present() {
		s.absent = time.Now().Add(absentFor)
		s.failures, s.reason = 0, nil
		return nil
	}
	return s.giveUp(f.problem())
}

func (s *Source) giveUp(problem *gpu.Error) error {
	s.notBefore = time.Now().Add(min(longestPause, firstPause<<min(s.failures, 10)))
	s.failures++
	s.reason = problem
	return problem
}

func unavailable(message, hint string) *gpu.Error {
	return &gpu.Error{Code: gpu.CodeSourceUnavailable, Message: message, Hint: hint}
}

const tryNvidiaSMI = "Run nvidia-smi. If it fails too, restart the computer."

// isAbsent reports whether this machine was just found to have no NVIDIA device and no driver for one.
func (s *Source) isAbsent() bool { return time.Now().Before(s.absent) }

// present looks for an NVIDIA device without the driver: on the PCI bus, or the device node of WSL.
func (s *Source) present() bool {
	if _, err := os.Stat(filepath.Join(s.config.Root, "dev/dxg")); err == nil {
		return true
	}
	vendors, err := filepath.Glob(filepath.Join(s.config.Root, "sys/bus/pci/devices/*/vendor"))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(vendors, func(file string) bool {
		vendor, err := os.ReadFile(file)
		if err != nil || strings.TrimSpace(string(vendor)) != "0x10de" {
			return false
		}
		class, err := os.ReadFile(filepath.Join(filepath.Dir(file), "class"))
		return err == nil && strings.HasPrefix(string(class), "0x03")
	})
}

// How a child fails.
var (
	errHang = errors.New("the driver does not answer")
	errDied = errors.New("the child died")
)

func (k *child) obituary(failure error, call string) string {
	if errors.Is(failure, errHang) {
		if call == "" {
			return "its reader did not answer for " + span(k.patience)
		}
		return fmt.Sprintf("the driver did not answer %s within %s", call, span(k.patience))
	}
	how := k.lastLine()
	if call == "" {
		return strings.TrimSpace("its reader ended: " + how)
	}
	return strings.TrimSpace("the driver's library crashed in " + call + ": " + how)
}
