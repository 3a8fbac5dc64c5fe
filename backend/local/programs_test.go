package local

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/gpu"
	"slipway/gpu/sim"
)

// container is one that was granted part of a device.
func container(t *testing.T, id string, running bool, grants ...gpu.Grant) engine.State {
	t.Helper()
	data, err := json.Marshal(session.Grants{CPUs: []int{0}, Memory: gpu.GiB, GPUs: grants})
	if err != nil {
		t.Fatal(err)
	}
	return engine.State{ID: id, Running: running, Labels: map[string]string{engine.LabelGrants: string(data)}}
}

func TestSimulatedSessionsUseTheDevicesTheyWereGranted(t *testing.T) {
	passed := time.Duration(0)
	machine := sim.Open(sim.Config{Seed: 1, Clock: func() gpu.Moment {
		return gpu.Moment{BootID: "one", Boot: time.Hour + passed, Awake: time.Hour + passed,
			Wall: time.Unix(0, 0).Add(passed)}
	}})
	found, err := machine.Inventory(t.Context())
	if err != nil || len(found) == 0 {
		t.Fatalf("%v, %v", found, err)
	}
	p := newPrograms()
	p.begin(nil, machine, nil)
	// seen are the containers that use a device a minute later.
	seen := func() map[string]int {
		t.Helper()
		passed += time.Minute
		sample, err := machine.Sample(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		containers := map[string]int{}
		for _, process := range sample.Processes {
			if process.Container != "" {
				containers[process.Container]++
			}
		}
		return containers
	}
	// held is what they hold.
	held := func() map[string]gpu.Bytes {
		t.Helper()
		sample, err := machine.Sample(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		bytes := map[string]gpu.Bytes{}
		for _, process := range sample.Processes {
			if process.Memory != nil {
				bytes[process.Container] += *process.Memory
			}
		}
		return bytes
	}
	half := gpu.Grant{Device: found[0].UUID, Share: 500, Memory: 10 * gpu.GiB}
	one, two, plain := strings.Repeat("1", 64), strings.Repeat("2", 64), strings.Repeat("3", 64)
	states := []engine.State{container(t, one, true, half), container(t, two, false, half), container(t, plain, true),
		{ID: strings.Repeat("4", 64), Running: true}}
	p.compare(states)
	p.compare(states)
	if got := seen(); len(got) != 1 || got[one] != 1 {
		t.Errorf("devices are used by %v, want one program of the first", got)
	}
	p.compare([]engine.State{container(t, one, false, half), container(t, two, true, half)})
	if got := seen(); len(got) != 1 || got[two] != 1 {
		t.Errorf("devices are used by %v, want one program of the second", got)
	}
	// What people start takes the place of what nobody did, and all of it computes.
	_, endFirst := p.Compute(two, "train", []gpu.Grant{half})
	pids, endSecond := p.Compute(two, "train", []gpu.Grant{half})
	if got := seen(); len(got) != 1 || got[two] != 2 {
		t.Errorf("devices are used by %v, want two programs of the second", got)
	}
	if used := held(); used[two] > half.Memory || len(pids) != 1 || used[two] < half.Memory/10*9 {
		t.Errorf("two programs %v hold %v of %v", pids, used, half.Memory)
	}
	endFirst()
	if got := seen(); len(got) != 1 || got[two] != 1 {
		t.Errorf("devices are used by %v, want the program that is left", got)
	}
	endSecond()
	p.compare(nil)
	if got := seen(); len(got) != 0 {
		t.Errorf("devices are used by %v although nothing runs", got)
	}
}
