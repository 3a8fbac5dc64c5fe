package slurm

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// row is a line of squeue with these fields changed.
func row(changes map[int]string) string {
	fields := []string{"12", "12", "N/A", "slipway-k3x9-2", "RUNNING", "None", "1700000000", "1700003600", "n[1-2]",
		"1:00:00", "0:10", "gpu", "normal", "lab", "4294901760", "slipway:i:k3x9:2"}
	for i, text := range changes {
		fields[i] = text
	}
	return strings.Join(fields, separator) + "\n"
}

func TestAJobIsRead(t *testing.T) {
	jobs, err := parseQueue([]byte(row(nil)))
	want := []Job{{ID: 12, Name: "slipway-k3x9-2", Comment: "slipway:i:k3x9:2", State: Running,
		Start: time.Unix(1700000000, 0), End: time.Unix(1700003600, 0), Nodes: []string{"n1", "n2"},
		TimeLimit: time.Hour, Elapsed: 10 * time.Second,
		Share: Share{Partition: "gpu", QOS: "normal", Account: "lab", Priority: 4294901760}}}
	if err != nil || !reflect.DeepEqual(jobs, want) {
		t.Errorf("read %+v: %v", jobs, err)
	}
	id, attempt, ok := ParseJobName(jobs[0].Name)
	if id != "k3x9" || attempt != 2 || !ok || NameOf(id, attempt) != jobs[0].Name {
		t.Errorf("attempt %d of %q: %v", attempt, id, ok)
	}
}

func TestAWaitingJobIsRead(t *testing.T) {
	jobs, err := parseQueue([]byte(row(map[int]string{fieldState: "PENDING", fieldReason: "(Resources)",
		fieldStart: "N/A", fieldEnd: "N/A", fieldNodes: "", fieldLimit: "UNLIMITED", fieldQOS: "(null)"})))
	if err != nil || len(jobs) != 1 {
		t.Fatal(err)
	}
	j := jobs[0]
	if j.State != Pending || j.Reason != "Resources" || !j.Start.IsZero() || !j.End.IsZero() || j.Nodes != nil ||
		j.TimeLimit != Unlimited || j.QOS != "" {
		t.Errorf("read %+v", j)
	}
}

func TestTasksOfAnArrayAreJobs(t *testing.T) {
	jobs, err := parseQueue([]byte(row(map[int]string{fieldTask: "0"}) +
		row(map[int]string{fieldID: "13", fieldTask: "7"})))
	if err != nil || len(jobs) != 2 || jobs[1].ID != 13 || jobs[1].Array != 12 || jobs[1].Task != 7 ||
		jobs[0].Array != 12 {
		t.Errorf("read %+v: %v", jobs, err)
	}
}

func TestJobsOfOthersArePassedOver(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":           "",
		"another name":      row(map[int]string{fieldName: "train"}),
		"almost ours":       row(map[int]string{fieldName: "slipway-K3-1"}),
		"without attempt":   row(map[int]string{fieldName: "slipway-k3x9"}),
		"attempt 0":         row(map[int]string{fieldName: "slipway-k3x9-0"}),
		"a broken line":     "what is this\n",
		"ours in a comment": row(map[int]string{fieldName: "train", fieldComment: "slipway-k3x9-2"}),
	} {
		if jobs, err := parseQueue([]byte(text)); err != nil || len(jobs) != 0 {
			t.Errorf("%s: %+v, %v", name, jobs, err)
		}
	}
}

func TestAListWithoutAJobThatCannotBeReadFails(t *testing.T) {
	whole := row(nil)
	for name, text := range map[string]string{
		"it ends in a line":     whole + whole[:40],
		"no line feed":          strings.TrimSuffix(whole, "\n"),
		"fields are missing":    strings.Join(strings.Split(whole, separator)[:8], separator) + "\n",
		"no number":             row(map[int]string{fieldID: "twelve"}),
		"a negative number":     row(map[int]string{fieldID: "-12"}),
		"a wrong list of nodes": row(map[int]string{fieldNodes: "n[1-"}),
		"a wrong task":          row(map[int]string{fieldTask: "[0-5]"}),
	} {
		if jobs, err := parseQueue([]byte(row(nil) + text)); err == nil {
			t.Errorf("%s: %+v", name, jobs)
		}
	}
}

func FuzzQueue(f *testing.F) {
	f.Add(row(nil))
	f.Add(row(map[int]string{fieldState: "PENDING", fieldNodes: "", fieldTask: "3"}) + row(nil))
	f.Add(row(map[int]string{fieldNodes: "n[1-99999]"}))
	f.Fuzz(func(t *testing.T, text string) {
		jobs, err := parseQueue([]byte(text))
		if err != nil && jobs != nil {
			t.Error("jobs with an error")
		}
		for _, j := range jobs {
			_, attempt, ours := ParseJobName(j.Name)
			if !ours || attempt < 1 || j.ID <= 0 || j.Task < 0 || j.Array < 0 || j.Priority < 0 || j.TimeLimit < 0 ||
				j.Elapsed < 0 {
				t.Errorf("read %+v", j)
			}
			texts := append([]string{j.Comment, string(j.Reason), j.Partition, j.QOS, j.Account}, j.Nodes...)
			for _, said := range texts {
				if strings.ContainsFunc(said, foreign) || len(said) > maxNotes {
					t.Errorf("%q cannot be shown", said)
				}
			}
		}
	})
}
