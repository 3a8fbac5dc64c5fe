package slurm

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"slipway/backend/session"
	"slipway/gpu"
)

// Placement is what a job got: a part for each node, in Slurm's order.
type Placement []Part

// Part is what a job got on one node.
type Part struct {
	Node    string
	CPUs    []int     // numbers of the node's CPUs
	Memory  gpu.Bytes // 0: not limited
	GPUType string    // as the site names it; may be empty
	GPUs    []int     // indexes of the devices, or of those that its shards are of; nil: none or unknown
	Shards  int       // 0: whole devices
}

// Placement returns what a job got. It returns engine_read_not-found if Slurm does not know the job, and an empty
// placement if the job has no nodes.
func (c *Client) Placement(ctx context.Context, id Named) (Placement, error) {
	out, err := c.run(ctx, "scontrol", "--oneliner", "--details", "show", "job", id.String())
	if err != nil {
		return nil, err
	}
	all, err := lines(out)
	if err != nil {
		return nil, unreadable("scontrol", err)
	}
	begins := "JobId=" + id.String() + " "
	if task, ok := id.(TaskID); ok { // which has a number of its own, too
		begins = fmt.Sprintf("ArrayJobId=%s ArrayTaskId=%d ", task.Array, task.Task)
	}
	for line := range all { // by the number of an array: one for each task
		if _, rest, _ := strings.Cut(line, " "); strings.HasPrefix(line, begins) || strings.HasPrefix(rest, begins) {
			placement, err := parsePlacement(line)
			if err != nil {
				return nil, unreadable("scontrol", err)
			}
			return placement, nil
		}
	}
	return nil, session.NewError(session.CodeNoContainer, "Slurm does not know the job.", "")
}

var parts = regexp.MustCompile(` Nodes=(\S+) CPU_IDs=(\S*) Mem=(\S*) GRES=(\S*)`)

// parsePlacement reads the parts of a job from a line of scontrol, before the fields in which people write.
func parsePlacement(line string) (placement Placement, err error) {
	line, _, _ = strings.Cut(line, " Command=")
	for _, found := range parts.FindAllStringSubmatch(line, maxHosts) {
		nodes, err := expandHosts(found[1])
		if err != nil {
			return nil, err
		}
		if len(placement)+len(nodes) > maxHosts {
			return nil, fmt.Errorf("a job has more than %d nodes", maxHosts)
		}
		part := Part{CPUs: expandNumbers(found[2]), Memory: mebibytes(found[3])}
		part.devices(found[4])
		for _, node := range nodes { // those on which it got the same
			part.Node = node
			placement = append(placement, part)
		}
	}
	return placement, nil
}

// gres is a resource of a node or a job, such as gpu:h200:2(IDX:0-1).
var gres = regexp.MustCompile(`^(gpu|shard):(?:([^:()]+):)?([0-9]+)(?:\(([^()]*)\))?$`)

// devices reads GPUs and shards, such as gpu:h200:2(IDX:0-1) or shard:3(1/2,2/2), where each item is of one device.
func (p *Part) devices(list string) {
	for item := range splitOutside(list, '(', ')') {
		found := gres.FindStringSubmatch(item)
		if found == nil {
			continue
		}
		var indexes []int
		if numbers, ok := strings.CutPrefix(found[4], "IDX:"); ok {
			indexes = expandNumbers(numbers)
		} else {
			indexes = sharedDevices(found[4])
		}
		if p.GPUType = clean(found[2], maxName); found[1] == "shard" {
			p.Shards = number(found[3])
		}
		p.GPUs = append(slices.Clone(p.GPUs), indexes...)
	}
}

// sharedDevices reads 0/4,3/4: of each device, how many shards the job has.
func sharedDevices(list string) (indexes []int) {
	i := 0
	for item := range strings.SplitSeq(list, ",") {
		has, _, shared := strings.Cut(item, "/")
		if !shared || i == maxHosts {
			return nil
		}
		if number(has) > 0 {
			indexes = append(indexes, i)
		}
		i++
	}
	return indexes
}
