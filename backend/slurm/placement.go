package slurm

import "slipway/gpu"

// Placement is what a job got: a part for each node, in Slurm's order.
type Placement []Part

// Part is what a job got on one node.
type Part struct {
	Node    string
	CPUs    []int     // numbers of the node's CPUs
	Memory  gpu.Bytes // 0: not limited
	GPUType string    // as the site names it; may be empty
	GPUs    []int     // indexes of its devices
	Shards  int       // of the devices in GPUs; 0: whole devices
}
