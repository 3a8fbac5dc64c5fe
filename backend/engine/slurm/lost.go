package slurm

import (
	"strings"

	"slipway/backend/engine"
	"slipway/backend/guest/node"
	"slipway/backend/session"
	"slipway/backend/slurm"
)

// taken says why Slurm ended the job of a run in a state, nil if it did not. A node that fails ends it, and so does a
// kernel of a cluster that ends badly, because srun kills the others then: they all end because of that one.
func (r *run) taken(state slurm.State) *engine.Taken {
	switch lost := r.lost(); {
	case state == slurm.NodeFail && len(lost) > 0:
		var nodes []string
		for _, k := range lost {
			nodes = append(nodes, k.node)
		}
		return taken(session.ReasonLost, session.CodeContainerLost,
			session.Say("slurmNodeLost", session.Fill("node", strings.Join(nodes, ", "))))
	case state == slurm.Failed && len(r.now().Kernels) > 1 && len(lost) > 0:
		return taken(session.ReasonLost, session.CodeContainerLost, session.Say("slurmKernelLost",
			session.Fill("name", lost[0].kernel), session.Fill("node", lost[0].node)))
	}
	return takenBy(state)
}

type lostKernel struct{ kernel, node string }

// lost are the kernels of a run that began and left no record of their end, though those of the others are there.
func (r *run) lost() (list []lostKernel) {
	for _, k := range r.now().Kernels {
		if _, err := node.ReadExit(r.dir, k.Kernel); err == nil {
			continue
		}
		if begun, err := node.ReadBegun(r.dir, k.Kernel); err == nil {
			list = append(list, lostKernel{k.Kernel, begun.Host})
		}
	}
	return list
}
