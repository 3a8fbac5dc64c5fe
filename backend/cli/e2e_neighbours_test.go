//go:build linux && !race

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/backend/engine/enginetest"
)

// otherDevice is the second that build/ci/moderndocker.sh makes up. No other
// test shares it among sessions.
const otherDevice = "GPU-22222222-bbbb-4000-8000-000000000002"

// promised sums up what running containers were given of a device, in
// thousandths, by their labels.
func promised(docker, device string) (sum int, err error) {
	out, err := exec.Command("docker", "-H", docker, "ps", "--filter", "label=slipway.grants", "--format",
		`{{.Label "slipway.grants"}}`).Output()
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(out)) {
		var grants struct {
			GPUs []struct {
				Device string          `json:"device"`
				Share  json.RawMessage `json:"share"`
			} `json:"gpus"`
		}
		if err := json.Unmarshal([]byte(line), &grants); err != nil {
			return 0, err
		}
		for _, g := range grants.GPUs {
			var share float64
			if _, err := fmt.Sscan(strings.Trim(string(g.Share), `"`), &share); err != nil {
				return 0, err
			}
			if share <= 1 {
				share *= 1000 // written as a share of one device
			}
			if g.Device == device {
				sum += int(share)
			}
		}
	}
	return sum, nil
}

// TestTwoSlipwaysOnOneMachineShareADevice runs two whole programs with folders
// of their own, as two people would, on one Docker and one driver.
func TestTwoSlipwaysOnOneMachineShareADevice(t *testing.T) {
	docker := enginetest.RequireModernDocker(t)
	d := newDriverOf(t, otherDevice)
	a, b := installBuilt(t, d, docker), installBuilt(t, d, docker)
	most := func(p *installed, name, command string) {
		p.t.Helper()
		p.must("run", "--image", p.image, "--name", name, "--type", "batch", "--cpu", "1", "--mem", "128m", "--gpu",
			"0.6", "--", command)
	}
	most(a, "her-run", "exec sleep 900")
	a.runs("her-run")
	most(b, "his-run", "true")
	b.waits("his-run", `her-run \(of [^)]+, another Slipway\) has 0\.6 \([0-9.]+ GiB\)`)
	a.must("stop", "--force", "--wait", "her-run")
	eventually(t, "his-run has run", func() (bool, any) {
		s := b.session("show", "his-run")
		return s.Status == "TERMINATED" && s.Result == "success", []any{s.Status, s.Reason, s.Wait}
	})

	// Both at once, several times: never is more than the device given.
	stop, watched := make(chan struct{}), make(chan error, 1)
	go func() {
		seen := 0
		for {
			select {
			case <-stop:
				if seen == 0 {
					watched <- errors.New("no container was seen that holds a part of the device")
					return
				}
				watched <- nil
				return
			case <-time.After(20 * time.Millisecond):
			}
			sum, err := promised(docker, otherDevice)
			seen = max(seen, sum)
			if err != nil || sum > 1000 {
				watched <- fmt.Errorf("%d thousandths of the device are given, %w", sum, err)
				return
			}
		}
	}()
	var group sync.WaitGroup
	for round := range 3 {
		for _, p := range []*installed{a, b} {
			group.Go(func() { most(p, fmt.Sprintf("round-%d", round), "sleep 0.5") })
		}
		group.Wait()
	}
	for _, p := range []*installed{a, b} {
		for round := range 3 {
			name := fmt.Sprintf("round-%d", round)
			eventually(t, name+" has run", func() (bool, any) {
				s := p.session("show", name)
				return s.Status == "TERMINATED" && s.Result == "success", []any{s.Status, s.Reason, s.Wait, s.Error}
			})
		}
	}
	close(stop)
	if err := <-watched; err != nil {
		t.Error(err)
	}
}
