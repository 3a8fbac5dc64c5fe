package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"slipway/build/bench/measure"
)

// gotest runs one test or benchmark of the module and returns its output.
func (b *bench) gotest(pkg string, env []string, args ...string) string {
	command := exec.CommandContext(b.ctx, "go", append([]string{"test", "-count=1", "-timeout=2h", pkg}, args...)...)
	command.Env = append(os.Environ(), env...)
	command.Stderr = os.Stderr
	printed, err := command.Output()
	if err != nil {
		measure.Fail("go test %s: %w\n%s", pkg, err, printed)
	}
	return string(printed)
}

// metric reads a number from a benchmark's output, by its unit.
func metric(printed, unit string) float64 {
	fields := strings.Fields(printed)
	if i := slices.Index(fields, unit); i > 0 {
		return measure.Get(strconv.ParseFloat(fields[i-1], 64))
	}
	measure.Fail("no %s in\n%s", unit, printed)
	return 0
}

// figure is one metric of a benchmark.
type figure struct {
	unit, what string
	value      string  // how it is written
	limit      string  // likewise; empty: none
	most       float64 // what the limit says
}

// tell runs a benchmark and reports its figures.
func (b *bench) tell(pkg, name string, times int, figures ...figure) {
	printed := b.gotest(pkg, nil, "-run=^$", "-bench=^"+name+"$", fmt.Sprintf("-benchtime=%dx", times))
	for _, f := range figures {
		value := metric(printed, f.unit)
		b.add(row{what: f.what, value: fmt.Sprintf(f.value, value), limit: f.limit, kept: f.limit == "" ||
			value < f.most || value == f.most && strings.Contains(f.limit, "≤")})
	}
}

func (b *bench) measurePlan() {
	b.tell("./backend/scheduler", "BenchmarkPlan", 1000,
		figure{"median-ms", "a plan for 1,000 waiting sessions and 8 devices", "p50 %.2f ms", "p50 < 5 ms", 5})
}

// measureWindow opens the real window on a machine with 10,000 finished sessions.
func (b *bench) measureWindow() {
	const ms, soon, loaded = "p50 %.0f ms", "p50 < 300 ms", "p50 < 1000 ms"
	const picture = "to the still picture of the shell"
	figures := []figure{
		{"start-ms", "the window, from the start of the program to its first picture", ms, "", 0},
		{"picture-ms", "its first page, with 10,000 finished sessions, " + picture, ms, soon, 300},
		{"shell-ms", "to the shell in its place", ms, "", 0},
		{"data-ms", "to its data", ms, loaded, 1000},
		{"finished-picture-ms", "the page of finished sessions, " + picture, ms, soon, 300},
		{"finished-shell-ms", "to the shell in its place", ms, "", 0},
		{"finished-data-ms", "to the newest of them", ms, loaded, 1000},
		{"finished-all-ms", "to all 10,000, ready to be filtered", ms, "", 0},
	}
	for i := range figures {
		figures[i].what += fmt.Sprintf(", %d times", b.o.windows)
	}
	b.tell("./app", "BenchmarkWindowWithTenThousandFinishedSessions", b.o.windows, figures...)
}

// measureSampler samples 100 real containers and 8 simulated devices.
func (b *bench) measureSampler() {
	b.tell("./backend/agent", "BenchmarkSamplerWithContainers", 30, figure{"%core",
		"sampling 100 containers and 8 simulated devices every 2 s", "%.2f %% of a core", "≤ 0.5 %", 0.5})
}

// measureDeaths kills the program again and again while sessions share a made-up device, and checks its accounts.
func (b *bench) measureDeaths() {
	printed := b.gotest("./backend/cli", []string{"SLIPWAY_TEST_DEATHS=" + strconv.Itoa(b.o.deaths)}, "-v",
		"-run=^TestNothingIsLostOrDoubledWhereverTheProgramIsKilled$")
	told := regexp.MustCompile(`deaths: (.*)`).FindStringSubmatch(printed)
	if told == nil {
		measure.Fail("the test of deaths sums nothing up:\n%s", printed)
	}
	b.add(row{what: fmt.Sprintf("kill -9 at %d random moments", b.o.deaths), value: told[1],
		limit: "nothing lost or doubled", kept: true})
}
