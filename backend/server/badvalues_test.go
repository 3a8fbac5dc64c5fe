package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"slipway/backend/api"
	"slipway/backend/session"
)

func TestBadValuesCreateNothing(t *testing.T) {
	w := start(t)
	for name, c := range map[string]struct {
		spec, field string
		status      int
	}{
		"no image":                {`{}`, "image", 422},
		"a bad image":             {`{"image":"A B"}`, "image", 422},
		"a bad type":              {`{"image":"a","type":"x"}`, "type", 422},
		"a short name":            {`{"image":"a","name":"x"}`, "name", 422},
		"a name of another type":  {`{"image":"a","name":5}`, "name", 400},
		"batch without a command": {`{"image":"a","type":"batch"}`, "command", 422},
		"a command without batch": {`{"image":"a","command":"x"}`, "command", 422},
		"a start in the past": {`{"image":"a","type":"batch","command":"x","notBefore":"2001-01-01T00:00:00Z"}`,
			"notBefore", 422},
		"a start that is no time": {`{"image":"a","type":"batch","command":"x","notBefore":"soon"}`, "notBefore", 400},
		"a bad timeout":           {`{"image":"a","type":"batch","command":"x","timeout":"5 parsecs"}`, "timeout", 422},
		"a timeout of zero":       {`{"image":"a","type":"batch","command":"x","timeout":"0s"}`, "timeout", 422},
		"a variable's bad name":   {`{"image":"a","env":[{"name":"1A","value":""}]}`, "env[0].name", 422},
		"a variable of ours":      {`{"image":"a","env":[{"name":"SLIPWAY_X","value":""}]}`, "env[0].name", 422},
		"a variable twice": {`{"image":"a","env":[{"name":"A","value":""},{"name":"A","value":""}]}`,
			"env[1].name", 422},
		"negative CPUs":           {`{"image":"a","resources":{"cpu":-1}}`, "resources.cpu", 422},
		"half a CPU":              {`{"image":"a","resources":{"cpu":0.5}}`, "resources.cpu", 400},
		"too many CPUs":           {`{"image":"a","resources":{"cpu":9}}`, "resources.cpu", 422},
		"an amount of nothing":    {`{"image":"a","resources":{"memory":"lots"}}`, "resources.memory", 422},
		"an amount that is empty": {`{"image":"a","resources":{"memory":true}}`, "resources.memory", 400},
		"negative memory":         {`{"image":"a","resources":{"memory":-5}}`, "resources.memory", 422},
		"little memory":           {`{"image":"a","resources":{"memory":"1m"}}`, "resources.memory", 422},
		"too much memory":         {`{"image":"a","resources":{"memory":"1t"}}`, "resources.memory", 422},
		"shm above memory":        {`{"image":"a","resources":{"memory":"1g","shm":"2g"}}`, "resources.shm", 422},
		"a bad shm":               {`{"image":"a","resources":{"shm":"x"}}`, "resources.shm", 422},
		"too many threads":        {`{"image":"a","threads":1001}`, "threads", 422},
		"a relative source":       {`{"image":"a","mounts":[{"source":"data"}]}`, "mounts[0].source", 422},
		"a system path": {`{"image":"a","mounts":[{"source":"/data","target":"/etc"}]}`, "mounts[0].target",
			422},
		"two mounts on one path": {`{"image":"a","mounts":[{"source":"/a/x"},{"source":"/b/x"}]}`, "mounts[1].target",
			422},
		"a low port":              {`{"image":"a","ports":[80]}`, "ports[0]", 422},
		"a port of ours":          {`{"image":"a","ports":[7421]}`, "ports[0]", 422},
		"an unknown agent":        {`{"image":"a","agent":"lab"}`, "agent", 422},
		"an unknown field":        {`{"image":"a","gpus":1}`, "gpus", 400},
		"an unknown field deeper": {`{"image":"a","mounts":[{"source":"/a","mode":"ro"}]}`, "mounts[0].mode", 400},
		"another case":            {`{"Image":"a"}`, "Image", 400},
		"a list for an object":    {`{"image":"a","resources":[]}`, "resources", 400},
		"a device of no kind":     {`{"image":"a","accelerator":"one"}`, "accelerator", 422},
		"a negative share":        {`{"image":"a","accelerator":"-0.5"}`, "accelerator", 422},
		"too fine a share":        {`{"image":"a","accelerator":"0.12345"}`, "accelerator", 422},
		"a share that is NaN":     {`{"image":"a","accelerator":"NaN"}`, "accelerator", 422},
		"too many devices":        {`{"image":"a","accelerator":"100000"}`, "accelerator", 422},
		"MIG without a profile":   {`{"image":"a","accelerator":"mig:"}`, "accelerator", 422},
		"MIG of no instances":     {`{"image":"a","accelerator":"mig:1g.10gb:0"}`, "accelerator", 422},
		"VRAM of nothing":         {`{"image":"a","accelerator":"vram:"}`, "accelerator", 422},
		"VRAM without end":        {`{"image":"a","accelerator":"vram:99999999999t"}`, "accelerator", 422},
		"a number for a device":   {`{"image":"a","accelerator":0.5}`, "accelerator", 400},
		"MPS of nothing":          {`{"image":"a","mps":true}`, "mps", 422},
		"MPS of whole devices":    {`{"image":"a","mps":true,"accelerator":"1"}`, "mps", 422},
		"MPS that is a text":      {`{"image":"a","mps":"yes"}`, "mps", 400},
		"too large a cluster":     {`{"image":"a","cluster":9}`, "cluster", 422},
		"a negative cluster":      {`{"image":"a","cluster":-1}`, "cluster", 422},
		"half a kernel":           {`{"image":"a","cluster":1.5}`, "cluster", 400},
		"too high a priority":     {`{"image":"a","priority":101}`, "priority", 422},
		"a negative priority":     {`{"image":"a","priority":-1}`, "priority", 422},
		"a priority in words":     {`{"image":"a","priority":"high"}`, "priority", 400},
		"after nothing":           {`{"image":"a","after":[""]}`, "after[0]", 422},
		"after itself":            {`{"image":"a","name":"again","after":["again"]}`, "after[0]", 422},
		"after one twice":         {`{"image":"a","after":["train-a","train-a"]}`, "after[1]", 422},
		"after a text":            {`{"image":"a","after":"train-a"}`, "after", 400},
		"after too many": {`{"image":"a","after":["` +
			strings.Join(strings.Fields(strings.Repeat("abcd ", 33)), `","`) + `"]}`, "after", 422},
		"a bad pending timeout":  {`{"image":"a","pendingTimeout":"soon"}`, "pendingTimeout", 422},
		"no time to wait":        {`{"image":"a","pendingTimeout":"0s"}`, "pendingTimeout", 422},
		"a wait of ages":         {`{"image":"a","pendingTimeout":"521w"}`, "pendingTimeout", 422},
		"a long label":           {`{"image":"a","label":"` + strings.Repeat("x", 65) + `"}`, "label", 422},
		"a label of two lines":   {`{"image":"a","label":"a\nb"}`, "label", 422},
		"a label with blanks":    {`{"image":"a","label":" a"}`, "label", 422},
		"a bad lifetime":         {`{"image":"a","idle":{"lifetime":"1 day"}}`, "idle.lifetime", 422},
		"a short lifetime":       {`{"image":"a","idle":{"lifetime":"30s"}}`, "idle.lifetime", 422},
		"a bad network time":     {`{"image":"a","idle":{"network":"-1h"}}`, "idle.network", 422},
		"thresholds, no window":  {`{"image":"a","idle":{"use":{"cpu":5}}}`, "idle.use.window", 422},
		"a window, no threshold": {`{"image":"a","idle":{"use":{"window":"30m"}}}`, "idle.use", 422},
		"a bad window":           {`{"image":"a","idle":{"use":{"window":"x","gpu":5}}}`, "idle.use.window", 422},
		"a bad grace": {`{"image":"a","idle":{"use":{"window":"5m","grace":"x","gpu":5}}}`,
			"idle.use.grace", 422},
		"a threshold of zero":  {`{"image":"a","idle":{"use":{"window":"5m","gpu":0}}}`, "idle.use.gpu", 422},
		"a threshold over all": {`{"image":"a","idle":{"use":{"window":"5m","vram":100.5}}}`, "idle.use.vram", 422},
		"a threshold in words": {`{"image":"a","idle":{"use":{"window":"5m","memory":"low"}}}`, "idle.use.memory",
			400},
		"an endless threshold": {`{"image":"a","idle":{"use":{"window":"5m","cpu":1e999}}}`, "idle.use.cpu", 400},
	} {
		t.Run(name, func(t *testing.T) {
			var p session.Error
			status := w.call(t, "POST", "/api/v1/sessions", `{"spec":`+c.spec+`}`, &p)
			if status != c.status || p.Code == "" || p.Message == "" || len(p.Fields) == 0 {
				t.Fatalf("%d %+v, want %d and a whole Problem", status, p, c.status)
			}
			for _, field := range p.Fields {
				if field.Field == c.field && field.Kind != "" && field.Message != "" {
					return
				}
			}
			t.Errorf("fields %+v, want %s among them", p.Fields, c.field)
		})
	}
	for name, body := range map[string]string{"no JSON": `{`, "two values": `{} {}`, "a list": `[]`, "a text": `"x"`,
		"a long key": fmt.Sprintf(`{"key":%q,"spec":{"image":"a"}}`, strings.Repeat("k", 200))} {
		t.Run(name, func(t *testing.T) {
			var p session.Error
			if status := w.call(t, "POST", "/api/v1/sessions", body, &p); status < 400 || status > 422 ||
				p.Code == "" || p.Hint == "" {
				t.Errorf("%d %+v", status, p)
			}
		})
	}
	if n := w.agent.Launches(); n != 0 {
		t.Fatalf("%d sessions were created", n)
	}
}

func TestTooLongABodyIsRefused(t *testing.T) {
	w := start(t)
	var p session.Error
	body := `{"spec":{"image":"` + strings.Repeat("a", 5<<20) + `"}}`
	if status := w.call(t, "POST", "/api/v1/sessions", body, &p); status != 413 ||
		p.Code != "request_decode_too-large" {
		t.Errorf("%d %+v", status, p)
	}
}

func TestAllFaultsAreToldAtOnce(t *testing.T) {
	w := start(t)
	var p session.Error
	w.call(t, "POST", "/api/v1/sessions", `{"spec":{"name":"x","resources":{"memory":"lots","shm":"x"},"ports":[80]}}`,
		&p)
	got := map[string]bool{}
	for _, field := range p.Fields {
		got[field.Field] = true
	}
	for _, want := range []string{"name", "image", "resources.memory", "resources.shm", "ports[0]"} {
		if !got[want] {
			t.Errorf("fields %+v lack %s", p.Fields, want)
		}
	}
	var preview api.Preview
	if status := w.call(t, "POST", "/api/v1/preview", `{"name":"x","resources":{"memory":"lots"}}`,
		&preview); status != 200 || len(preview.Errors) != 3 {
		t.Errorf("preview %d %+v", status, preview.Errors)
	}
}

func TestAPreviewJudgesWhateverADraftHolds(t *testing.T) {
	w := start(t)
	for name, c := range map[string]struct {
		draft string
		want  []string // fields with a fault, sorted
	}{
		"an empty draft":    {`{}`, []string{"image"}},
		"no list, and more": {`{"image":"a","mounts":5,"env":[{"name":"1"}]}`, []string{"env[0].name", "mounts"}},
		"half a CPU":        {`{"image":"a","name":"x","resources":{"cpu":1.5}}`, []string{"name", "resources.cpu"}},
		"a text for a port": {`{"image":"a","ports":["x",80]}`, []string{"ports[0]"}},
		"an unknown field":  {`{"image":"a","colour":"red"}`, []string{"colour"}},
		"no length of time": {`{"image":"a","type":"batch","timeout":"1.5m"}`, []string{"command", "timeout"}},
		"targets that overlap": {`{"image":"a","mounts":[{"source":"/data","target":"/a"},` +
			`{"source":"/data","target":"/a/b"},{"source":"/data","target":"/usr/x"}]}`,
			[]string{"mounts[1].target", "mounts[2].target"}},
	} {
		t.Run(name, func(t *testing.T) {
			var preview api.Preview
			status := w.call(t, "POST", "/api/v1/preview", c.draft, &preview)
			var got []string
			for _, e := range preview.Errors {
				got = append(got, e.Field)
			}
			if slices.Sort(got); status != 200 || !slices.Equal(got, c.want) {
				t.Errorf("%d with faults at %q, want %q", status, got, c.want)
			}
		})
	}
	var p session.Error
	if status := w.call(t, "POST", "/api/v1/preview", `[]`, &p); status != 400 {
		t.Errorf("what is no draft at all: %d %+v", status, p)
	}
}
