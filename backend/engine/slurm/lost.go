package slurm

import (
	"slipway/backend/engine"
	"slipway/backend/guest/node"
	"slipway/backend/session"
	"slipway/backend/slurm"
)

// taken says why Slurm ended the job of a run, nil if it did not. A node that fails ends it, and so does a kernel of a
// cluster that ends badly, because srun kills the others then: they all end because of that one.
func (r *run) taken(end ending) *engine.Taken {
	switch lost := r.lost(); {
	case end.state == slurm.NodeFail && len(lost) > 0:
		end.nodes = nil
		for _, k := range lost {
			end.nodes = append(end.nodes, k.node)
		}
	case end.state == slurm.Failed && len(r.now().Kernels) > 1 && len(lost) > 0:
		return taken(session.ReasonLost, session.CodeContainerLost, session.Say("slurmKernelLost",
			session.Fill("name", lost[0].kernel), session.Fill("node", lost[0].node)))
	}
	return end.taken(r.now().Batch)
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
