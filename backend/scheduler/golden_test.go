package scheduler

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"slipway/backend/session"
	"slipway/gpu"
)

var update = flag.Bool("update", false, "write the plans of testdata anew")

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// scene is a snapshot as the golden files write it: times are lengths before or
// after noon.
type scene struct {
	CPUs       int
	Memory     gpu.Bytes
	Devices    []gpu.Device
	Giving     gpu.Config
	Blind      string
	Unread     []gpu.UUID
	WhyUnread  string
	Ruler      string
	Allowances map[string]session.Allowance
	Measured   []struct {
		Device   gpu.UUID
		Free     gpu.Bytes
		Used     map[session.ID]gpu.Bytes
		Foreign  []Foreign
		Returned gpu.Bytes
		Settles  string
	}
	Promised []struct {
		Name  string
		Owner string
		CPUs  []int
		Mem   gpu.Bytes
		GPUs  []gpu.Grant
		Since string
		Ends  string
		Kinds []string
	}
	Queue []struct {
		Name      string
		Owner     string
		CPU       int
		Mem       gpu.Bytes
		GPU       string
		Kernels   int
		Priority  *int
		NotBefore string
		Deadline  string
		Timeout   string
		After     []Dependency
		Kinds     []string
	}
	History []struct {
		Kind    string
		Lengths []string
	}
}

func read(t *testing.T, data []byte) Snapshot {
	t.Helper()
	var c scene
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		t.Fatal(err)
	}
	length := func(text string) time.Duration {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	at := func(text string) *time.Time {
		if text == "" {
			return nil
		}
		when := noon.Add(length(text))
		return &when
	}
	s := Snapshot{Ruler: c.Ruler, Allowances: c.Allowances, Machine: Machine{Name: "lab", Memory: c.Memory,
		Devices: c.Devices, Giving: c.Giving, NoDevices: c.Blind, Unread: c.Unread, WhyUnread: c.WhyUnread}}
	for i := range c.CPUs {
		s.Machine.CPUs = append(s.Machine.CPUs, i)
	}
	for _, m := range c.Measured {
		measured := Measured{Device: m.Device, Free: m.Free, Used: m.Used, Foreign: m.Foreign, Returned: m.Returned}
		if m.Settles != "" {
			measured.Settles = *at(m.Settles)
		}
		s.Machine.Measured = append(s.Machine.Measured, measured)
	}
	for _, p := range c.Promised {
		s.Promised = append(s.Promised, Promise{Session: session.ID(p.Name), Name: p.Name, Owner: p.Owner,
			Since: at(p.Since), Ends: at(p.Ends), Kinds: p.Kinds,
			Grants: session.Grants{CPUs: p.CPUs, Memory: p.Mem, GPUs: p.GPUs}})
	}
	for _, q := range c.Queue {
		asked, err := gpu.ParseRequest(q.GPU)
		if err != nil {
			t.Fatal(err)
		}
		r := Request{Session: session.ID(q.Name), Name: q.Name, Owner: q.Owner, GPU: asked,
			Resources: session.Resources{CPU: q.CPU, Memory: q.Mem},
			Kernels:   q.Kernels, Priority: session.DefaultPriority,
			NotBefore: at(q.NotBefore), Deadline: at(q.Deadline), After: q.After, Kinds: q.Kinds}
		if q.Priority != nil {
			r.Priority = *q.Priority
		}
		if q.Timeout != "" {
			r.Timeout = length(q.Timeout)
		}
		s.Queue = append(s.Queue, r)
	}
	var runs []Run
	for _, h := range c.History {
		for _, text := range h.Lengths {
			runs = append(runs, Run{Kinds: []string{h.Kind}, Length: length(text)})
		}
	}
	if len(runs) > 0 {
		s.History = NewHistory(runs)
	}
	return s
}

// write says what a plan decides.
func write(plan Schedule) string {
	var b strings.Builder
	for _, d := range plan.Decisions {
		switch {
		case d.Place != nil:
			fmt.Fprintf(&b, "%s: starts\n", d.Session)
			for _, s := range d.Place.Steps {
				fmt.Fprintf(&b, "    %s: %s\n", s.Name, s.Message)
			}
		case d.End != nil:
			fmt.Fprintf(&b, "%s: ends as %s\n    %s %s\n", d.Session, d.End.Reason, d.End.Cause.Code,
				d.End.Cause.Message)
		default:
			fmt.Fprintf(&b, "%s: waits, %s, number %d\n    %s\n", d.Session, d.Wait.Code, d.Wait.Position,
				d.Wait.Message)
			if d.Wait.Until != nil {
				fmt.Fprintf(&b, "    until %s\n", d.Wait.Until.Sub(noon))
			}
			if d.Wait.Start != nil {
				fmt.Fprintf(&b, "    starts in about %s, give or take %s\n", d.Wait.Start.Sub(noon), d.Wait.Margin)
			}
			fmt.Fprintf(&b, "    estimate: %s\n", session.Reader{Now: noon}.Estimate(*d.Wait))
		}
	}
	if !plan.Next.IsZero() {
		fmt.Fprintf(&b, "next plan in %s\n", plan.Next.Sub(noon))
	}
	return b.String()
}

func TestGoldenPlans(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(archive.Files) == 0 || archive.Files[0].Name != "snapshot" {
				t.Fatal("it does not begin with a snapshot")
			}
			s := read(t, archive.Files[0].Data)
			plan := Plan(s, noon)
			checkSentences(t, plan)
			checkPlan(t, s, plan)
			if again := Plan(s, noon); !reflect.DeepEqual(again, plan) {
				t.Errorf("the same snapshot gives another plan")
			}
			got := write(plan)
			if *update {
				archive.Files = append(archive.Files[:1], txtar.File{Name: "plan", Data: []byte(got)})
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if len(archive.Files) != 2 || string(archive.Files[1].Data) != got {
				t.Errorf("the plan is not that of %s (write it with -update):\n%s", file, got)
			}
		})
	}
}

// checkSentences fails the test where a reason is not a whole sentence.
func checkSentences(t *testing.T, plan Schedule) {
	t.Helper()
	sentence := func(text string) {
		if text == "" || !strings.HasSuffix(text, ".") || strings.ToUpper(text[:1]) != text[:1] ||
			strings.Contains(text, "..") {
			t.Errorf("not a sentence: %q", text)
		}
	}
	for _, d := range plan.Decisions {
		if d.Wait != nil {
			sentence(d.Wait.Message)
			said := list(" ", slices.Concat(d.Wait.Said, d.Wait.Details)).English()
			if said != d.Wait.Message || strings.Contains(said, "  ") {
				t.Errorf("%q says in parts %q", d.Wait.Message, said)
			}
		}
		if d.End != nil {
			sentence(d.End.Cause.Message)
		}
		if d.Place != nil {
			for _, s := range d.Place.Steps {
				sentence(s.Message)
			}
		}
	}
}

// checkPlan judges a plan by other means than those it was made by: whatever
// was promised and placed fits the machine, each device and what is free of it.
func checkPlan(t testing.TB, s Snapshot, plan Schedule) {
	t.Helper()
	for _, wrong := range plan.Refused {
		t.Errorf("the audit refuses what was planned: %s", wrong)
	}
	if len(plan.Decisions) != len(s.Queue) {
		t.Errorf("%d decisions for %d sessions", len(plan.Decisions), len(s.Queue))
	}
	cpus := map[int]session.ID{}
	memory := s.Machine.Memory
	judged := false // whether what is taken is of this plan, and not found
	touched := map[gpu.UUID]bool{}
	share, whole := map[gpu.UUID]gpu.Share{}, map[gpu.UUID]session.ID{}
	promised := map[gpu.UUID]gpu.Bytes{}
	take := func(id session.ID, g session.Grants) {
		for _, cpu := range g.CPUs {
			if other, taken := cpus[cpu]; taken && judged {
				t.Errorf("CPU %d belongs to %s and %s", cpu, other, id)
			}
			cpus[cpu] = id
		}
		memory -= g.Memory
		for _, d := range g.GPUs {
			key := d.Device + d.Instance
			touched[key] = touched[key] || judged
			if d.Instance != "" || d.Whole {
				if other, taken := whole[key]; judged && (taken || share[key] > 0) {
					t.Errorf("%s belongs to %s and %s", key, other, id)
				}
				whole[key] = id
			}
			if share[key] += d.Share; judged && (share[key] > gpu.WholeDevice || whole[key] != "" && whole[key] != id) {
				t.Errorf("%s is promised %s times over", key, share[key])
			}
			promised[key] += d.Memory
		}
	}
	for _, p := range s.Promised {
		take(p.Session, p.Grants)
	}
	judged = true
	for i, d := range plan.Decisions {
		q := s.Queue[i]
		if d.Session != q.Session {
			t.Errorf("decision %d is about %s, not %s", i, d.Session, q.Session)
		}
		if d.Place == nil {
			continue
		}
		total := d.Place.Total()
		if len(total.CPUs) != q.cpus() || total.Memory != q.memory() || len(d.Place.Kernels) != q.kernels() {
			t.Errorf("%s asked for %d CPUs and %s and got %+v", q.Name, q.cpus(), q.memory(), total)
		}
		given, bytes := gpu.Share(0), gpu.Bytes(0)
		for _, g := range total.GPUs {
			given, bytes = given+g.Share, bytes+g.Memory
		}
		if want := (q.GPU.Shares + gpu.Share(q.GPU.Devices)*gpu.WholeDevice) * gpu.Share(q.kernels()); want > 0 &&
			given != want {
			t.Errorf("%s asked for %s of devices and got %s", q.Name, want, given)
		}
		if want := q.GPU.Memory * gpu.Bytes(q.kernels()); bytes < want {
			t.Errorf("%s asked for %s on a device and got %s", q.Name, want, bytes)
		}
		take(q.Session, total)
		for _, m := range s.Machine.Measured {
			var more gpu.Bytes
			for _, g := range total.GPUs {
				if g.Device == m.Device {
					more += g.Memory
				}
			}
			if more > 0 && more-more/20 > m.Free-m.Returned {
				t.Errorf("%s was given %s of %s, of which %s is free", q.Name, more, m.Device, m.Free-m.Returned)
			}
		}
	}
	if memory < 0 {
		t.Errorf("%s of memory is promised too much", -memory)
	}
	for _, d := range s.Machine.Devices {
		if touched[d.UUID] && d.Memory > 0 && promised[d.UUID] > d.Usable() {
			t.Errorf("%s of %s has promised %s", d.UUID, d.Usable(), promised[d.UUID])
		}
	}
}
