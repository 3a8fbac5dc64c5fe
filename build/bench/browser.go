package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"slipway/build/bench/measure"
)

// measureBrowser uploads and downloads a large file in Chromium, beside cp and a minimal HTTP server, and lists and
// scrolls a large folder. frontend/e2e/browser.figures.ts drives the browser.
func (b *bench) measureBrowser() {
	dir := measure.Get(os.MkdirTemp("", "slipway-bench-browser-"))
	defer os.RemoveAll(dir)
	makeNoise(filepath.Join(dir, copiedName))
	plain := startPlainly(b.ctx, dir)
	defer plain.web.Close()
	command := exec.CommandContext(b.ctx, "npx", "vitest", "run", "--config", "e2e/figures.config.ts")
	command.Dir = "frontend"
	command.Env = append(os.Environ(), "SLIPWAY_BIN="+measure.Get(filepath.Abs(b.o.binary)),
		"SLIPWAY_PLAIN="+plain.url, "SLIPWAY_PLAIN_DIR="+dir, "SLIPWAY_ROUNDS="+strconv.Itoa(b.o.copies))
	printed, err := command.CombinedOutput()
	if err != nil {
		measure.Fail("%w\n%s", err, printed)
	}
	figure := func(unit string) float64 { return metric(string(printed), unit) }
	took := func(unit string) time.Duration { return time.Duration(figure(unit) * float64(time.Millisecond)) }
	for _, way := range [][2]string{{"up-ms", "to"}, {"down-ms", "from"}} {
		b.addRate("1 GiB "+way[1]+" a folder by the page, in Chromium", took(way[0]), took("cp-ms"),
			"plain HTTP in the same browser", took("plain-"+way[0]), 0)
	}
	b.addGrowth("the program's memory meanwhile", figure("before-MB"), figure("peak-MB"))
	b.add(row{what: "1 GiB to a folder by the page, with a cut of 1.5 s (SHA-256 equal)",
		value: took("cut-ms").Round(time.Millisecond).String(), kept: true})
	listed := figure("listed-ms")
	b.add(row{fmt.Sprintf("a folder with %d entries, from the click to all of them painted, in Chromium", listedFiles),
		fmt.Sprintf("p50 %.0f ms", listed), "", "", "p50 < 300 ms", listed < 300})
	b.add(row{what: "scrolled to its end, from frame to frame",
		value: fmt.Sprintf("p50 %.1f ms, p95 %.1f ms, longest %.0f ms", figure("frame-ms"), figure("late-frame-ms"),
			figure("longest-frame-ms")), kept: true})
}
