package devices

import (
	"context"
	"errors"
	"testing"

	"slipway/gpu"
)

// moody is a source whose driver answers only sometimes.
type moody struct {
	gpu.Empty
	silent bool
}

func (m *moody) Inventory(ctx context.Context) ([]gpu.Device, error) {
	if m.silent {
		return nil, errors.New("the driver does not answer")
	}
	return m.Empty.Inventory(ctx)
}

func TestOnlyAnInventoryThatWasNeverToldMayYetHaveDevices(t *testing.T) {
	source := &moody{Empty: gpu.Empty{Now: OwnMoment()}, silent: true}
	d := New(source, OwnMoment())
	if !d.Now().Unlisted {
		t.Error("before the first look the devices count as told")
	}
	if err := d.Look(t.Context(), nil); err == nil || !d.Now().Unlisted || d.Now().Text == "" {
		t.Errorf("after a look that failed with %v: %+v", err, d.Now())
	}
	source.silent = false
	if err := d.Look(t.Context(), nil); err != nil || d.Now().Unlisted {
		t.Errorf("after a look that found none: %v, %+v", err, d.Now())
	}
	source.silent = true
	if err := d.Look(t.Context(), nil); err == nil || d.Now().Unlisted {
		t.Errorf("what was told once counts as never told: %+v", d.Now())
	}
}
