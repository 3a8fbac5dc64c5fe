package session

import (
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/gpu"
)

func TestWhatIsAskedOfSlurmIsChecked(t *testing.T) {
	long := strings.Repeat("x", MaxSlurmText+1)
	gpus := gpu.Request{Devices: 1}
	for name, c := range map[string]struct {
		asked Slurm
		gpus  gpu.Request
		wrong []string
	}{
		"nothing": {},
		"everything": {asked: Slurm{Partition: "gpu,gpu-long", Account: "lab_1", QOS: "normal", GPUType: "a100-sxm",
			Constraint: "(ib&avx512)|[rack1*2&rack2*4]", Reservation: "course.2026", Time: Duration(4 * time.Hour),
			Options: []string{"--exclusive", "--licenses=matlab:2", "--switches=1@10:00"}}, gpus: gpus},
		"names with something else": {asked: Slurm{Partition: "gpu --wrap=id", Account: "a,b", QOS: "-x",
			GPUType: "a;b", Constraint: "$(id)", Reservation: "a b"}, gpus: gpus,
			wrong: []string{"slurm.partition", "slurm.account", "slurm.qos", "slurm.gpuType", "slurm.constraint",
				"slurm.reservation"}},
		"an option as a name": {asked: Slurm{Partition: "--wrap=id", Constraint: "-C"},
			wrong: []string{"slurm.partition", "slurm.constraint"}},
		"a line break":            {asked: Slurm{Account: "a\nb"}, wrong: []string{"slurm.account"}},
		"too long":                {asked: Slurm{Account: long}, wrong: []string{"slurm.account"}},
		"a type of no GPU":        {asked: Slurm{GPUType: "a100"}, wrong: []string{"slurm.gpuType"}},
		"less than a minute":      {asked: Slurm{Time: Duration(time.Second)}, wrong: []string{"slurm.time"}},
		"a time before the start": {asked: Slurm{Time: -1}, wrong: []string{"slurm.time"}},
		"words for options": {asked: Slurm{Options: []string{"exclusive", "-N2", "--nice=\x1b[2J", "--", "--Nice",
			"--x=" + strings.Repeat("x", MaxSlurmOption)}}, wrong: []string{"slurm.options[0]", "slurm.options[1]",
			"slurm.options[2]", "slurm.options[3]", "slurm.options[4]", "slurm.options[5]"}},
		"too many options": {asked: Slurm{Options: slices.Repeat([]string{"--x"}, MaxSlurmOptions+1)},
			wrong: []string{"slurm.options"}},
	} {
		spec := Spec{Image: "python:3.13", Accelerator: c.gpus, Schedule: Schedule{Slurm: &c.asked}}
		var wrong []string
		for _, e := range spec.Validate(time.Now(), Limits{}) {
			wrong = append(wrong, e.Field)
			if e.Message == "" || strings.ContainsAny(e.Message, "\x1b\n") {
				t.Errorf("%s: %q is said of %s", name, e.Message, e.Field)
			}
		}
		if !slices.Equal(wrong, c.wrong) {
			t.Errorf("%s: wrong are %v", name, wrong)
		}
	}
	full := Spec{Schedule: Schedule{Slurm: &Slurm{}}}.WithDefaults()
	if full.Slurm != nil {
		t.Error("nothing asked of Slurm is kept")
	}
}
