package cli

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"slipway/backend/api"
	"slipway/backend/session"
)

var ruleTexts = map[string]session.ScalingRule{
	"outstanding>4,<1,min=1,max=4": {Source: "router", Metric: "outstanding", ScaleUp: new(4.0), ScaleDown: new(1.0),
		MinReplicas: 1, MaxReplicas: 4},
	"gpu_util<20.5,window=2m,cooldown=90s": {Source: "device", Metric: "gpu_util", ScaleDown: new(20.5),
		Window: session.Duration(2 * time.Minute), Cooldown: session.Duration(90 * time.Second)},
	"vllm:num_requests_waiting>0.5,step=2": {Source: "framework", Metric: "vllm:num_requests_waiting",
		ScaleUp: new(0.5), StepSize: 2},
	"framework/tgi_queue_size>10": {Source: "framework", Metric: "tgi_queue_size", ScaleUp: new(10.0)},
	"framework/mem>10":            {Source: "framework", Metric: "mem", ScaleUp: new(10.0)},
}

func TestRulesAreReadAndWritten(t *testing.T) {
	for text, want := range ruleTexts {
		got, err := parseRule(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		if again := ruleText(want); again != text {
			t.Errorf("%s is written %s", text, again)
		}
		spaced := strings.NewReplacer(">", " > ", "<", " < ", "=", " = ", ",", " , ").Replace(text)
		if got, err := parseRule(spaced); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", spaced, got, err)
		}
	}
	for text, want := range map[string]string{
		"":                    "begin with a metric and a threshold, such as outstanding>4",
		">4":                  "begin with a metric and a threshold, such as outstanding>4",
		"outstanding":         "begin with a metric and a threshold, such as outstanding>4",
		"outstanding,>4":      "begin with a metric and a threshold, such as outstanding>4",
		"outstanding>four":    `"four" is not a number after >`,
		"outstanding>4,>5":    "> is there twice",
		"outstanding>4,max=x": `"x" is not a number of replicas after max=`,
		"outstanding>NaN":     `"NaN" is not a number after >`,
		"outstanding>4,window=": `window: "" is not a length of time: write a whole number with s, m, h, d or w, ` +
			"for example 30m",
		"outstanding>4,most=3": `unknown part "most": write >, <, step=, window=, cooldown=, min= or max=`,
		"outstandin>4": `unknown metric "outstandin": write one of waiting, outstanding, rps, gpu_util, gpu_mem, ` +
			"cpu_util, mem, or framework/outstandin if the server has it",
	} {
		if got, err := parseRule(text); err == nil || err.Error() != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

func TestScaleChangesRules(t *testing.T) {
	f := newPlane(t)
	var sent session.ServiceChange
	f.handle("PATCH /api/v1/services/{service}", func(w http.ResponseWriter, r *http.Request) {
		sent = session.ServiceChange{}
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			t.Error(err)
		}
		s := api.Service{Service: session.Service{Name: "llama", Revision: 1,
			ServiceCondition: session.ServiceCondition{State: session.ServiceReady}}}
		s.Replicas = 1
		if sent.Rules != nil {
			s.Rules = *sent.Rules
			s.Scaling.Rules = make([]session.RuleState, len(s.Rules))
			for i := range s.Rules[:len(s.Rules)/2] {
				s.Scaling.Rules[i].Value = new(2.5)
			}
		}
		reply(w, http.StatusOK, s)
	})
	got := f.run(t, "service", "scale", "llama", "--rule", "outstanding>4,<1", "--rule", "framework/queue>1",
		"--may-sleep=false")
	want := "llama: READY, 1 wanted, revision 1.\noutstanding>4,<1: 2.5\nframework/queue>1: no value\n"
	if got.code != ExitOK || got.stdout != want {
		t.Errorf("%+v", got)
	}
	if sent.Rules == nil || len(*sent.Rules) != 2 || sent.Replicas != nil || sent.TryAgain ||
		sent.MaySleep == nil || *sent.MaySleep {
		t.Errorf("sent %+v", sent)
	}
	if got := f.run(t, "service", "scale", "llama", "2", "--no-rules"); got.code != ExitOK || sent.Rules == nil ||
		len(*sent.Rules) != 0 || *sent.Replicas != 2 || sent.MaySleep != nil {
		t.Errorf("%+v, sent %+v", got, sent)
	}
	if got := f.run(t, "service", "scale", "llama", "2"); got.code != ExitOK || sent.Rules != nil {
		t.Errorf("%+v, sent %+v", got, sent)
	}
	for _, args := range [][]string{{}, {"two"}, {"--rule", "outstanding>4", "--no-rules"}, {"--rule", "load>4"}} {
		if got := f.run(t, append([]string{"service", "scale", "llama"}, args...)...); got.code != ExitUsage {
			t.Errorf("%q: %+v", args, got)
		}
	}
}
