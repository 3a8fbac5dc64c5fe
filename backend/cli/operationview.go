package cli

import (
	"fmt"
	"strings"
	"time"

	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/session"
)

// operationView prints the steps of an operation after they end, and the progress of the running one on one line of a
// terminal.
type operationView struct {
	statusLine
	left  bool // it was interrupted, so prompts stay unanswered
	shown map[string]hub.StepState
}

// marks are the symbols of ended steps.
var marks = map[hub.StepState]string{"ok": "✓", "warning": "!", "failed": "✗", "skipped": "-"}

// logTail is how many lines are printed of what a failed operation has logged.
const logTail = 20

func (v *operationView) show(o api.Operation) {
	running := ""
	for _, step := range o.Steps {
		mark, over := marks[step.State]
		switch {
		case step.State == "running":
			running = step.Title
		case over && v.shown[step.Name] != step.State:
			v.clear()
			v.shown[step.Name] = step.State
			fmt.Fprintf(v.w, "%s %-8s %s", mark, step.State, session.Printable(step.Title))
			if step.Detail != "" {
				fmt.Fprintf(v.w, ": %s", session.Printable(step.Detail))
			}
			fmt.Fprintln(v.w)
			if step.Remedy != "" {
				fmt.Fprintf(v.w, "           → %s\n", session.Printable(step.Remedy))
			}
		}
	}
	if o.State == hub.OperationFailed && o.Log != "" { // which is printed once, since it has ended
		v.clear()
		lines := strings.Split(strings.TrimRight(o.Log, "\n"), "\n")
		for _, line := range lines[max(0, len(lines)-logTail):] {
			fmt.Fprintf(v.w, "           | %s\n", session.Printable(line))
		}
	}
	if running == "" || o.Prompt != nil {
		return
	}
	text := "… " + session.Printable(running)
	if p := o.Progress; p != nil && p.Done < p.Total {
		text += "  " + progressBar(*p)
	}
	v.statusLine.show(text)
}

const progressWidth = 24

// progressBar formats a progress in bytes: "███░░ 42 % 11.2 MiB of 26.8 MiB, 5 MiB/s, 3s left".
func progressBar(p api.Progress) string {
	if p.Total <= 0 {
		return size(p.Done)
	}
	full := int(progressWidth * min(max(float64(p.Done)/float64(p.Total), 0), 1))
	text := strings.Repeat("█", full) + strings.Repeat("░", progressWidth-full) + " " + percent(p.Done, p.Total) +
		"  " + size(p.Done) + " of " + size(p.Total)
	if p.Rate > 0 {
		text += ", " + size(p.Rate) + "/s"
	}
	if p.Left != nil {
		text += ", " + span(time.Duration(*p.Left*float64(time.Second))) + " left"
	}
	return text
}
