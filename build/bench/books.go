package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// gotest runs one test or benchmark of the module and returns what it printed.
func gotest(ctx context.Context, pkg string, env []string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", append([]string{"test", "-count=1", "-timeout=2h", pkg}, args...)...)
	command.Env = append(os.Environ(), env...)
	command.Stderr = os.Stderr
	printed, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("go test %s: %w\n%s", pkg, err, printed)
	}
	return string(printed), nil
}

// metric reads a number from what a benchmark printed, by its unit.
func metric(printed, unit string) (float64, error) {
	fields := strings.Fields(printed)
	for i, field := range fields {
		if field == unit && i > 0 {
			return strconv.ParseFloat(fields[i-1], 64)
		}
	}
	return 0, fmt.Errorf("no %s in\n%s", unit, printed)
}

// measurePlan plans a queue of 1,000 for 8 devices.
func measurePlan(ctx context.Context, _ *plane, _ options, r *report) error {
	printed, err := gotest(ctx, "./backend/scheduler", nil, "-run=^$", "-bench=^BenchmarkPlan$", "-benchtime=1000x")
	if err != nil {
		return err
	}
	median, err := metric(printed, "median-ms")
	if err != nil {
		return err
	}
	r.add(row{"a plan for 1,000 waiting sessions and 8 devices", fmt.Sprintf("p50 %.2f ms", median), "", "",
		"p50 < 5 ms", median < 5})
	return nil
}

// measureWindow opens the real window on a machine where 10,000 sessions have ended.
func measureWindow(ctx context.Context, _ *plane, o options, r *report) error {
	printed, err := gotest(ctx, "./app", nil, "-run=^$", "-bench=^BenchmarkWindowWithTenThousandFinishedSessions$",
		fmt.Sprintf("-benchtime=%dx", o.windows))
	if err != nil {
		return err
	}
	for _, one := range []struct {
		unit, what string
		limit      float64 // 0: none
	}{
		{"start-ms", "the window, from the start of the program to its first picture", 0},
		{"picture-ms", "its first page, with 10,000 finished sessions, to the still picture of the shell", 300},
		{"shell-ms", "to the shell in its place", 0},
		{"data-ms", "to its data", 1000},
		{"finished-picture-ms", "the page of finished sessions, to the still picture of the shell", 300},
		{"finished-shell-ms", "to the shell in its place", 0},
		{"finished-data-ms", "to the newest of them", 1000},
		{"finished-all-ms", "to all 10,000, ready to be filtered", 0},
	} {
		median, err := metric(printed, one.unit)
		if err != nil {
			return err
		}
		w := row{what: fmt.Sprintf("%s, %d times", one.what, o.windows), value: fmt.Sprintf("p50 %.0f ms", median),
			kept: true}
		if one.limit > 0 {
			w.limit, w.kept = fmt.Sprintf("p50 < %.0f ms", one.limit), median < one.limit
		}
		r.add(w)
	}
	return nil
}

// measureSampler watches 100 real containers and 8 simulated devices.
func measureSampler(ctx context.Context, _ *plane, _ options, r *report) error {
	printed, err := gotest(ctx, "./backend/agent", nil, "-run=^$", "-bench=^BenchmarkSamplerWithContainers$",
		"-benchtime=30x")
	if err != nil {
		return err
	}
	share, err := metric(printed, "%core")
	if err != nil {
		return err
	}
	r.add(row{"sampling 100 containers and 8 simulated devices every 2 s", fmt.Sprintf("%.2f %% of a core", share), "",
		"", "≤ 0.5 %", share <= 0.5})
	return nil
}

// whatDied is the line in which the test of deaths sums up.
var whatDied = regexp.MustCompile(`deaths: (.*)`)

// measureDeaths kills the program again and again under sessions that share a
// made-up device, and compares its books with what really happened.
func measureDeaths(ctx context.Context, _ *plane, o options, r *report) error {
	printed, err := gotest(ctx, "./backend/cli", []string{"SLIPWAY_TEST_DEATHS=" + strconv.Itoa(o.deaths)}, "-v",
		"-run=^TestNothingIsLostOrDoubledWhereverTheProgramIsKilled$")
	if err != nil {
		return err
	}
	told := whatDied.FindStringSubmatch(printed)
	if told == nil {
		return fmt.Errorf("the test of deaths sums nothing up:\n%s", printed)
	}
	r.add(row{fmt.Sprintf("kill -9 at %d random moments", o.deaths), told[1], "", "", "nothing lost or doubled", true})
	return nil
}
