package devices_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/gpu"
	"slipway/gpu/clock"
	"slipway/gpu/devices"
	"slipway/gpu/nvml"
)

// TestMain lets the test program be the reader of NVIDIA devices.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == nvml.ChildCommand {
		os.Exit(nvml.ChildMain(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// script is a source that answers what it is told to.
type script struct {
	devices []gpu.Device
	sample  gpu.Sample
	err     error
	closed  int
}

func (s *script) Inventory(context.Context) ([]gpu.Device, error) { return s.devices, s.err }
func (s *script) Sample(context.Context) (gpu.Sample, error)      { return s.sample, s.err }
func (s *script) Close() error                                    { s.closed++; return nil }

func now() gpu.Moment { return gpu.Moment{BootID: "boot-1", Boot: time.Hour} }

func card(uuid gpu.UUID, driver string, pid int) *script {
	return &script{devices: []gpu.Device{{UUID: uuid}}, sample: gpu.Sample{
		Epoch: gpu.Epoch{Boot: "boot-1", Driver: driver}, Devices: []gpu.DeviceSample{{UUID: uuid}},
		Processes: []gpu.ProcessSample{{PID: pid, Device: uuid}}, Lost: []string{"something of " + driver},
	}}
}

func broken() *script {
	return &script{err: &gpu.Error{Code: gpu.CodeSourceUnavailable, Message: "The driver is gone.", Hint: "Restart."}}
}

func TestSeveralSourcesAreOne(t *testing.T) {
	a, b := card("A", "one", 1), card("B", "two", 2)
	a.devices = append(a.devices, gpu.Device{UUID: "A2", Index: 1})
	a.sample.Since = time.Minute
	m := devices.Join(now, a, &script{}, b)
	list, err := m.Inventory(context.Background())
	if err != nil || len(list) != 3 || list[2].UUID != "B" || list[2].Index != 2 || list[0].Index != 0 {
		t.Errorf("got %+v, %v", list, err)
	}
	s, err := m.Sample(context.Background())
	if err != nil || len(s.Devices) != 2 || len(s.Processes) != 2 || len(s.Lost) != 2 || s.At != now() ||
		s.Epoch != (gpu.Epoch{Boot: "boot-1", Driver: "one;;two"}) || s.Since != time.Minute {
		t.Errorf("got %+v, %v", s, err)
	}
	if err := m.Close(); err != nil || a.closed != 1 || b.closed != 1 {
		t.Errorf("%v, %d, %d", err, a.closed, b.closed)
	}
}

func TestOneSourceThatFailsIsALossWhileAnotherHasDevices(t *testing.T) {
	m := devices.Join(now, broken(), card("B", "two", 2))
	if list, err := m.Inventory(context.Background()); err != nil || len(list) != 1 {
		t.Errorf("got %+v, %v", list, err)
	}
	s, err := m.Sample(context.Background())
	if err != nil || len(s.Devices) != 1 || !slices.Contains(s.Lost, "The driver is gone. Restart.") {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestTheCardsOfADriverThatDiesStayBesideOthers(t *testing.T) {
	a, b := card("A", "one", 1), card("B", "two", 2)
	a.devices = append(a.devices, gpu.Device{UUID: "A2", Index: 1,
		Lost: &gpu.Loss{Kind: gpu.LossFallen, Why: "it fell off the bus"}})
	m := devices.Join(now, a, b)
	before, err := m.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	listed := a.devices
	a.devices, a.err = nil, broken().err
	list, err := m.Inventory(t.Context())
	if err != nil || len(list) != 3 {
		t.Fatalf("got %+v, %v", list, err)
	}
	for i, want := range []gpu.LossKind{gpu.LossSilent, gpu.LossFallen} {
		if d := list[i]; d.UUID != before[i].UUID || d.Index != i || d.Lost == nil || d.Lost.Kind != want ||
			d.Capabilities.Energy.State != gpu.Unknown {
			t.Errorf("%d became %+v, not %s", i, d, want)
		}
	}
	if list[2].UUID != "B" || list[2].Index != 2 || list[2].Lost != nil {
		t.Errorf("the other card became %+v", list[2])
	}
	b.err = a.err
	if list, err := m.Inventory(t.Context()); err == nil {
		t.Errorf("nobody answers, and there are %+v", list)
	}
	a.devices, a.err, b.err = listed, nil, nil
	if list, err := m.Inventory(t.Context()); err != nil || len(list) != 3 || list[0].Lost != nil {
		t.Errorf("got %+v, %v", list, err)
	}
}

func TestAFailureBeginsNoEpochForTheOthers(t *testing.T) {
	a := card("A", "one", 1)
	m := devices.Join(now, a, card("B", "two", 2))
	before, err := m.Sample(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	a.err = errors.New("for a moment")
	if after, err := m.Sample(context.Background()); err != nil || after.Epoch != before.Epoch {
		t.Errorf("%+v became %+v, %v", before.Epoch, after.Epoch, err)
	}
}

func TestOneSourceThatFailsFailsAllWhenNoOtherHasDevices(t *testing.T) {
	m := devices.Join(now, broken(), &script{})
	var e *gpu.Error
	if _, err := m.Inventory(context.Background()); !errors.As(err, &e) {
		t.Errorf("got %v", err)
	}
	if _, err := m.Sample(context.Background()); !errors.As(err, &e) {
		t.Errorf("got %v", err)
	}
}

func TestAQuestionThatIsGivenUpIsNoLoss(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	m := devices.Join(now, card("A", "one", 1))
	if _, err := m.Inventory(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := m.Sample(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestThisMachineCanBeRead holds the sources to answering on any machine, with
// or without devices: a list, or a reason in words.
func TestThisMachineCanBeRead(t *testing.T) {
	m, err := devices.Open(devices.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	list, err := m.Inventory(ctx)
	var e *gpu.Error
	if err != nil && (!errors.As(err, &e) || e.Hint == "") {
		t.Fatal(err)
	}
	s, err := m.Sample(ctx)
	if err != nil && !errors.As(err, &e) || err == nil && s.At.BootID != clock.Now().BootID {
		t.Errorf("%+v, %v", s, err)
	}
	for _, d := range list {
		if d.UUID == "" || strings.TrimSpace(d.Model) == "" {
			t.Errorf("got %+v", d)
		}
	}
}
