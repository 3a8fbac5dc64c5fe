package agent

import (
	"context"

	"slipway/backend/agent/doctor"
	"slipway/backend/engine"
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

// engineNeeds is what the watch of the engine needs of the agent.
type engineNeeds struct{ *Agent }

func (a engineNeeds) Reconcile(ctx context.Context) error {
	if err := a.reconcile(ctx); err != nil {
		return err
	}
	return a.askAttachment(ctx)
}

func (a engineNeeds) Sweep(ctx context.Context) error { return a.networks.Sweep(ctx) }

func (a engineNeeds) ContainerChanged(state engine.State) { a.containerChanged(state) }

func (a engineNeeds) PublishMachine() { a.publishMachine() }

func (a engineNeeds) PlanAgain() { a.rouse() }

// heed returns err. Everybody learns of it where the engine does not answer.
func (a *Agent) heed(err error) error { return a.health.Heed(err) }
