package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// measureBrowser brings a large file to a folder and fetches it by the pages
// themselves, in Chromium, beside cp and beside the same browser with the least
// program that does it, and lists and scrolls a large folder.
// frontend/e2e/browser.figures.ts drives the browser.
func measureBrowser(ctx context.Context, _ *plane, o options, r *report) error {
	dir, err := os.MkdirTemp("", "slipway-bench-browser-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	if _, err := makeNoise(filepath.Join(dir, copiedName)); err != nil {
		return err
	}
	plain, err := startPlainly(ctx, dir)
	if err != nil {
		return err
	}
	defer plain.web.Close() //nolint:errcheck // nobody asks it any more
	binary, err := filepath.Abs(o.binary)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "npx", "vitest", "run", "--config", "e2e/figures.config.ts")
	command.Dir = "frontend"
	command.Env = append(os.Environ(), "SLIPWAY_BIN="+binary, "SLIPWAY_PLAIN="+plain.url, "SLIPWAY_PLAIN_DIR="+dir,
		"SLIPWAY_ROUNDS="+strconv.Itoa(o.copies))
	var printed bytes.Buffer
	command.Stdout, command.Stderr = &printed, &printed
	if err := command.Run(); err != nil {
		return fmt.Errorf("%w\n%s", err, printed.String())
	}
	return judgeBrowser(printed.String(), o, r)
}

// judgeBrowser makes rows of what the browser's measurements printed.
func judgeBrowser(printed string, o options, r *report) error {
	var troubles []error
	figure := func(unit string) float64 {
		value, err := metric(printed, unit)
		troubles = append(troubles, err)
		return value
	}
	took := func(unit string) time.Duration { return time.Duration(figure(unit) * float64(time.Millisecond)) }
	cp := took("cp-ms")
	for _, way := range []struct{ unit, what string }{
		{"up-ms", "1 GiB to a folder by the page, in Chromium"},
		{"down-ms", "1 GiB from a folder by the page, in Chromium"},
	} {
		ours, plain := took(way.unit), took("plain-"+way.unit)
		x := ratio(max(cp, plain), ours)
		compared := fmt.Sprintf("cp: %s (%.2f); plain HTTP in the same browser: %s (%.2f)", rate(cp), ratio(cp, ours),
			rate(plain), ratio(plain, ours))
		r.add(row{way.what + fmt.Sprintf(", %d times", o.copies), rate(ours), compared, fmt.Sprintf("%.2f", x),
			"≥ 0.7 of the lower rate", x >= 0.7})
	}
	before, peak := figure("before-MB"), figure("peak-MB")
	r.add(row{"the program's memory meanwhile", fmt.Sprintf("%.1f MB at most", peak),
		fmt.Sprintf("before: %.1f MB", before), "", fmt.Sprintf("grows < %d MiB", mostGrown>>20),
		peak-before < mostGrown/1e6})
	r.add(row{what: "1 GiB to a folder by the page, with a cut of 1.5 s (SHA-256 equal)",
		value: took("cut-ms").Round(time.Millisecond).String(), kept: true})
	listed := figure("listed-ms")
	r.add(row{fmt.Sprintf("a folder with %d entries, from the click to all of them painted, in Chromium", listedFiles),
		fmt.Sprintf("p50 %.0f ms", listed), "", "", "p50 < 300 ms", listed < 300})
	r.add(row{what: "scrolled to its end, from frame to frame",
		value: fmt.Sprintf("p50 %.1f ms, p95 %.1f ms, longest %.0f ms", figure("frame-ms"), figure("late-frame-ms"),
			figure("longest-frame-ms")), kept: true})
	return errors.Join(troubles...)
}
