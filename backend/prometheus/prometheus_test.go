package prometheus

import (
	"maps"
	"math"
	"strings"
	"testing"
)

// served is what vLLM answers, shortened.
const served = `# HELP python_gc_objects_collected_total Objects collected during gc
# TYPE python_gc_objects_collected_total counter
python_gc_objects_collected_total{generation="0"} 9547.0
python_gc_objects_collected_total{generation="1"} 453.0
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a } \"b\" \\"} 2.0
vllm:num_requests_running{engine="1",model_name="x"} 3.0 1700000000000
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_sum{model_name="x"} 7
vllm:time_to_first_token_seconds_bucket{le="+Inf",model_name="x"} 5
vllm:time_to_first_token_seconds_count{model_name="x"} 5
# TYPE go_gc_duration_seconds summary
go_gc_duration_seconds{quantile="0.5"} 7.7361e-05
go_gc_duration_seconds_count 13
	untyped_sum  -1.5e3	

never NaN
some_count 0x1p4
`

func TestRead(t *testing.T) {
	all := []string{"python_gc_objects_collected_total", "vllm:num_requests_running", "untyped_sum", "some_count",
		"never", "go_gc_duration_seconds", "go_gc_duration_seconds_count", "vllm:time_to_first_token_seconds_sum",
		"vllm:time_to_first_token_seconds_bucket", "absent"}
	want := map[string]float64{"python_gc_objects_collected_total": 10000, "vllm:num_requests_running": 5,
		"untyped_sum": -1500, "some_count": 16}
	for name, text := range map[string]string{"as it is": served,
		"of Windows":                 strings.ReplaceAll(served, "\n", "\r\n"),
		"without its last line feed": strings.TrimSuffix(served, "\n")} {
		got, err := Read(text, all)
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if got, err := Read(served, all[1:2]); err != nil || len(got) != 1 {
		t.Errorf("one name: %v, %v", got, err)
	}
	if got, err := Read("", all); err != nil || len(got) != 0 {
		t.Errorf("nothing: %v, %v", got, err)
	}
	for _, sum := range []string{"a +Inf", "a 1e308\na{b=\"c\"} 1e308", "a +Inf\na -Inf", "a 1\na NaN"} {
		if got, err := Read(sum, []string{"a"}); err != nil || len(got) != 0 {
			t.Errorf("%q: %v, %v", sum, got, err)
		}
	}
}

func TestWhatIsNoMetric(t *testing.T) {
	for _, text := range []string{"<html>", `{"status":"ok"}`, "a", "a b", "a 1 2 3", "a 1 b", "1a 1", "a{",
		`a{b="c} 1`, `a{b="\`, "a{} ", "a-b 1", "ü 1", "a 1\nb", "a\x00 1", "a 1e999"} {
		if got, err := Read(text, []string{"a"}); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(served, "vllm:num_requests_running")
	f.Add(`a{b="\"}"} 1 2`, "a")
	f.Add("a_sum 1\n# TYPE a summary", "a_sum")
	f.Fuzz(func(t *testing.T, text, name string) {
		got, err := Read(text, []string{name})
		if err != nil && got != nil || len(got) > 1 {
			t.Errorf("%v, %v", got, err)
		}
		for read, value := range got {
			if read != name || math.IsNaN(value) || math.IsInf(value, 0) || !strings.Contains(text, name) {
				t.Errorf("%q has %v", read, value)
			}
		}
	})
}
