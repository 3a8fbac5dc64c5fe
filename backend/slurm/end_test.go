package slurm

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestEnds(t *testing.T) {
	line := func(fields ...string) string { return strings.Join(fields, separator) + "\n" }
	for name, test := range map[string]struct {
		text string
		task int
		want End
	}{
		"nothing": {"", 0, End{}},
		"success": {line("12", "COMPLETED", "0:0", "1700000000", "1700000060", "n1"), 0, End{ID: 12, State: Completed,
			Start: time.Unix(1700000000, 0), End: time.Unix(1700000060, 0), Nodes: []string{"n1"}}},
		"the last one": {line("13", "FAILED", "3:0", "Unknown", "Unknown", "n[1-2]") +
			line("12", "NODE_FAIL", "0:0", "Unknown", "Unknown", "n1"),
			0, End{ID: 13, State: Failed, Exit: 3, Nodes: []string{"n1", "n2"}}},
		"by a person": {line("12", "CANCELLED by 1500", "0:15", "None", "1700000060", "None assigned"),
			0, End{ID: 12, State: Cancelled, Signal: 15, By: "1500", End: time.Unix(1700000060, 0)}},
		"a task": {line("12_3", "COMPLETED", "0:0", "", "", "") + line("12_4", "FAILED", "1:0", "", "", ""), 3,
			End{ID: 12, State: Completed}},
		"a task that never started": {line("12_[1,4-6]", "CANCELLED", "0:0", "", "", "") +
			line("12_3", "COMPLETED", "0:0", "", "", ""), 5, End{ID: 12, State: Cancelled}},
		"another task": {line("12_3", "COMPLETED", "0:0", "", "", ""), 4, End{}},
		"any task":     {line("12_3", "COMPLETED", "0:0", "", "", ""), anyTask, End{ID: 12, State: Completed}},
		"other lines":  {"Welcome to the cluster!\n" + line("12.batch", "COMPLETED", "0:0", "", "", ""), 0, End{}},
	} {
		if got, err := parseEnd([]byte(test.text), test.task); err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := parseEnd([]byte("12\x1fCOMPLE"), anyTask); err == nil {
		t.Error("half a line was read")
	}
}
