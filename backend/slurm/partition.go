package slurm

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"slipway/gpu"
)

// Partition is a group of nodes with limits of its own.
type Partition struct {
	Name          string
	Up            bool // jobs start in it
	Default       bool
	MaxTime       time.Duration // may be [Unlimited]
	DefaultTime   time.Duration // 0: MaxTime
	MaxNodes      int           // of one job; 0: not limited
	Nodes         int
	Shapes        []Shape  // kinds of nodes, the most frequent first
	AllowAccounts []string // nil: all but DenyAccounts
	DenyAccounts  []string
	AllowQOS      []string // nil: all but DenyQOS
	DenyQOS       []string
	QOS           string // whose limits apply to all jobs in it; empty: none
}

// Shape is a kind of node.
type Shape struct {
	Nodes    int // of this kind
	CPUs     int
	Memory   gpu.Bytes
	GPUs     []GPU
	Features []string
}

// GPU is a kind of device of a node.
type GPU struct {
	Type   string // may be empty
	Count  int
	Shards int // of all of them; 0: whole devices only
}

// The most that is read of a site.
const (
	maxPartitions = 1000
	maxShapes     = 100 // of a partition
)

// parsePartitions reads the partitions that scontrol printed, with the nodes that sinfo printed.
func parsePartitions(out, nodes []byte) (partitions []Partition) {
	shapes := parseShapes(nodes)
	for line := range strings.Lines(string(out)) {
		fields := map[string]string{}
		for field := range strings.FieldsSeq(line) {
			name, text, _ := strings.Cut(field, "=")
			fields[name] = text
		}
		name := word(fields["PartitionName"])
		if name == "" || fields["RootOnly"] == "YES" || len(partitions) == maxPartitions {
			continue
		}
		partitions = append(partitions, Partition{
			Name: name, Up: fields["State"] == "UP", Default: fields["Default"] == "YES",
			MaxTime: span(fields["MaxTime"]), DefaultTime: span(fields["DefaultTime"]),
			MaxNodes: number(fields["MaxNodes"]), Nodes: number(fields["TotalNodes"]), Shapes: shapes[name],
			AllowAccounts: allowed(fields["AllowAccounts"]), DenyAccounts: words(fields["DenyAccounts"]),
			AllowQOS: allowed(fields["AllowQos"]), DenyQOS: words(fields["DenyQos"]), QOS: word(fields["QoS"]),
		})
	}
	return partitions
}

// allowed are the names in a list where ALL is no list.
func allowed(text string) []string {
	if text == "ALL" {
		return nil
	}
	return words(text)
}

// shapeFields are the fields of sinfo that a shape is read from: partition, nodes, CPUs, memory, devices, features.
const shapeFields = "%R" + separator + "%D" + separator + "%c" + separator + "%m" + separator + "%G" + separator + "%f"

// parseShapes reads the kinds of nodes of each partition.
func parseShapes(out []byte) map[string][]Shape {
	shapes := map[string][]Shape{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), separator)
		if len(fields) != strings.Count(shapeFields, separator)+1 {
			continue
		}
		name := word(fields[0])
		if name == "" || len(shapes) == maxPartitions || len(shapes[name]) == maxShapes {
			continue
		}
		shapes[name] = append(shapes[name], Shape{
			Nodes: number(fields[1]), CPUs: number(strings.TrimSuffix(fields[2], "+")),
			Memory: mebibytes(fields[3]), GPUs: parseGPUs(fields[4]), Features: words(fields[5]),
		})
	}
	for _, kinds := range shapes {
		slices.SortStableFunc(kinds, func(a, b Shape) int { return cmp.Compare(b.Nodes, a.Nodes) })
	}
	return shapes
}

// parseGPUs reads the devices of a node, such as gpu:h200:4(S:0-1),shard:h200:16(S:0-1).
func parseGPUs(list string) (kinds []GPU) {
	for item := range splitOutside(list, '(', ')') {
		found := gres.FindStringSubmatch(item)
		if found == nil || len(kinds) == maxShapes {
			continue
		}
		name, count := clean(found[2], maxName), number(found[3])
		i := slices.IndexFunc(kinds, func(g GPU) bool { return g.Type == name })
		if i < 0 {
			kinds = append(kinds, GPU{Type: name})
			i = len(kinds) - 1
		}
		if found[1] == "shard" {
			kinds[i].Shards += count
		} else {
			kinds[i].Count += count
		}
	}
	return kinds
}
