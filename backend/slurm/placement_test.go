package slurm

import (
	"reflect"
	"strings"
	"testing"

	"slipway/gpu"
)

// shown is a job as scontrol shows it in one line, with what it got.
func shown(parts string) string {
	return "JobId=12 JobName=slipway-k3x9-1 UserId=lab(1500) GroupId=lab(1500) Priority=4294901740 Account=(null) " +
		"JobState=RUNNING Reason=None NodeList=n[1-2] NumNodes=2 TRES=cpu=4,mem=600M,node=2,billing=4,gres/gpu=3 " +
		"JOB_GRES=gpu:h200:3 " + parts + " MinCPUsNode=1 Features=(null) Command=/home/lab/job.sh WorkDir=/home/lab\n"
}

func TestPlacements(t *testing.T) {
	for parts, want := range map[string]Placement{
		"": nil,
		"  Nodes=n1 CPU_IDs=0-1 Mem=300 GRES=gpu:h200:2(IDX:0-1)" +
			"   Nodes=n2 CPU_IDs=4,6 Mem=300 GRES=gpu:h200:1(IDX:3)": {
			{Node: "n1", CPUs: []int{0, 1}, Memory: 300 * gpu.MiB, GPUType: "h200", GPUs: []int{0, 1}},
			{Node: "n2", CPUs: []int{4, 6}, Memory: 300 * gpu.MiB, GPUType: "h200", GPUs: []int{3}}},
		"  Nodes=n[1-2] CPU_IDs=0 Mem=0 GRES=": {{Node: "n1", CPUs: []int{0}}, {Node: "n2", CPUs: []int{0}}},
		"  Nodes=n1 CPU_IDs=0 Mem=300 GRES=gpu:1(IDX:1-2,4),license:3": {
			{Node: "n1", CPUs: []int{0}, Memory: 300 * gpu.MiB, GPUs: []int{1, 2, 4}}},
		"  Nodes=n1 CPU_IDs=0 Mem=300 GRES=shard:h200:3(0/4,3/4)": {
			{Node: "n1", CPUs: []int{0}, Memory: 300 * gpu.MiB, GPUType: "h200", GPUs: []int{1}, Shards: 3}},
		"  Nodes=n1 CPU_IDs=1 Mem=50 GRES=shard:3(IDX:0)": { // as 22.05 says it
			{Node: "n1", CPUs: []int{1}, Memory: 50 * gpu.MiB, GPUs: []int{0}, Shards: 3}},
		"  Nodes=n1 CPU_IDs=0 Mem=300 GRES=gpu:h200:1(CNT:1)": {
			{Node: "n1", CPUs: []int{0}, Memory: 300 * gpu.MiB, GPUType: "h200"}},
	} {
		got, err := parsePlacement(shown(parts))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s\n is %+v\n not %+v: %v", parts, got, want, err)
		}
	}
	forged := shown("Nodes=n1 CPU_IDs=0 Mem=300 GRES=") // what follows Command is written by people
	forged = strings.Replace(forged, "/home/lab\n", "/home/lab Nodes=evil CPU_IDs=9 Mem=1 GRES=\n", 1)
	if got, err := parsePlacement(forged); err != nil || len(got) != 1 || got[0].Node != "n1" {
		t.Errorf("a folder is a part: %+v, %v", got, err)
	}
	if got, err := parsePlacement(shown("Nodes=n[1- CPU_IDs=0 Mem=300 GRES=")); err == nil {
		t.Errorf("read %+v", got)
	}
}
