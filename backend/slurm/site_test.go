package slurm

import (
	"reflect"
	"testing"
	"time"

	"slipway/gpu"
)

func TestASiteIsRead(t *testing.T) {
	var site Site
	site.readConfig([]byte(`Configuration data as of 2026-11-26T23:26:57
AccountingStorageType   = accounting_storage/slurmdbd
ClusterName             = hill
JobSubmitPlugins        = lua,require_timelimit
KillWait                = 30 sec
MinJobAge               = 300 sec
ProctrackType           = proctrack/cgroup
SLURM_VERSION           = 22.05.8
`))
	if want := (Site{Version: "22.05.8", Cluster: "hill", KillWait: 30 * time.Second, MinJobAge: 5 * time.Minute,
		Proctrack: "proctrack/cgroup", TimeRequired: true, Accounting: true}); !reflect.DeepEqual(site, want) {
		t.Errorf("read %+v", site)
	}
	partitions := parsePartitions([]byte(
		"PartitionName=gpu AllowGroups=ALL AllowAccounts=bio,chem AllowQos=ALL AllocNodes=ALL Default=YES QoS=gpuq "+
			"DefaultTime=01:00:00 RootOnly=NO MaxNodes=2 MaxTime=2-00:00:00 MinNodes=0 State=UP TotalNodes=3\n"+
			"PartitionName=all DenyAccounts=guests DenyQos=(null) Default=NO QoS=N/A DefaultTime=NONE RootOnly=NO "+
			"MaxNodes=UNLIMITED MaxTime=UNLIMITED State=DOWN TotalNodes=4\n"+
			"PartitionName=admin RootOnly=YES State=UP\nbroken\n"),
		[]byte("gpu\x1f1\x1f2\x1f2000\x1f(null)\x1f(null)\n"+
			"gpu\x1f2\x1f64\x1f64000+\x1fgpu:h200:4(S:0-1),shard:h200:16(S:0,1)\x1fnvlink,a\n"+
			"broken\x1f\n"))
	want := []Partition{
		{Name: "gpu", Up: true, Default: true, MaxTime: 48 * time.Hour, DefaultTime: time.Hour, MaxNodes: 2, Nodes: 3,
			Shapes: []Shape{
				{Nodes: 2, CPUs: 64, Memory: 64000 * gpu.MiB, GPUs: []GPU{{Type: "h200", Count: 4, Shards: 16}},
					Features: []string{"nvlink", "a"}},
				{Nodes: 1, CPUs: 2, Memory: 2000 * gpu.MiB}},
			AllowAccounts: []string{"bio", "chem"}, QOS: "gpuq"},
		{Name: "all", MaxTime: Unlimited, Nodes: 4, DenyAccounts: []string{"guests"}},
	}
	if !reflect.DeepEqual(partitions, want) {
		t.Errorf("read  %+v\nwants %+v", partitions, want)
	}
}

func TestAccountsAreRead(t *testing.T) {
	associations := parseAssociations([]byte(
		"bio||normal,high|normal|4|8|1-00:00:00|cpu=8,gres/gpu=2,gres/gpu:h200=1\n" +
			"chem|gpu|normal|||||\n|||||||\nbroken|\n"))
	if want := []Association{{Account: "bio", QOS: []string{"normal", "high"}, DefaultQOS: "normal",
		Limits: Limits{MaxJobs: 4, MaxSubmit: 8, MaxWall: 24 * time.Hour, MaxGPUs: 2}},
		{Account: "chem", Partition: "gpu", QOS: []string{"normal"}}}; !reflect.DeepEqual(associations, want) {
		t.Errorf("read %+v", associations)
	}
	qos := parseQOS([]byte("normal|0||||\nhigh|100|1|2|02:00:00|gres/gpu=1\n"))
	if want := []QOS{{Name: "normal"}, {Name: "high", Priority: 100,
		Limits: Limits{MaxJobs: 1, MaxSubmit: 2, MaxWall: 2 * time.Hour, MaxGPUs: 1}}}; !reflect.DeepEqual(qos, want) {
		t.Errorf("read %+v", qos)
	}
}

func FuzzSite(f *testing.F) {
	f.Add("PartitionName=gpu MaxTime=2-00:00:00 State=UP", "gpu\x1f2\x1f64\x1f64000\x1fgpu:h200:4(S:0-1)\x1fa",
		"a|b|c|d|1|2|3|cpu=1")
	f.Add(shown("Nodes=n1 CPU_IDs=0 Mem=300 GRES=shard:h200:3(0/4,3/4)"),
		"12\x1fFAILED\x1f3:0\x1f1\x1f2\x1fn1\n", "KillWait = 30 sec")
	f.Fuzz(func(t *testing.T, one, two, three string) {
		for _, p := range parsePartitions([]byte(one), []byte(two)) {
			if p.Name == "" || p.MaxTime < 0 || p.DefaultTime < 0 || p.Nodes < 0 || len(p.Shapes) > maxShapes {
				t.Errorf("read %+v", p)
			}
		}
		if len(parseAssociations([]byte(three))) > maxAccounts || len(parseQOS([]byte(three))) > maxAccounts {
			t.Error("too many accounts")
		}
		(&Site{}).readConfig([]byte(three))
		placement, err := parsePlacement(one)
		for _, part := range placement {
			if part.Node == "" || part.Memory < 0 || part.Shards < 0 || err != nil {
				t.Errorf("got %+v: %v", part, err)
			}
		}
		if end, err := parseEnd([]byte(two), anyTask); err == nil && (end.ID < 0 || end.Exit < 0 || end.Signal < 0) {
			t.Errorf("ended %+v", end)
		}
		if id, err := submitted([]byte(two)); err == nil && id <= 0 {
			t.Errorf("submitted %d", id)
		}
	})
}
