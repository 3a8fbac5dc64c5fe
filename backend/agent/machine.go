package agent

import (
	"context"

	"slipway/backend/agent/doctor"
	"slipway/backend/session"
	"slipway/gpu"
)

func (a *Agent) Doctor(ctx context.Context) ([]session.Check, error) {
	disk := func(ctx context.Context) (free, total gpu.Bytes, err error) {
		m, err := a.Machine(ctx)
		return m.Load.DiskFree, m.Load.DiskTotal, err
	}
	return doctor.Doctor{Config: a.config.Doctor, Dir: a.config.Dir, Engine: a.engine, Devices: a.devices.source,
		Disk: disk}.Check(ctx)
}
