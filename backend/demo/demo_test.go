package demo

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"errors"
	"image/png"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"slipway/backend/place"
	"slipway/backend/session"
	"slipway/tunnel"
)

func TestClaim(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	if got, err := Claim(dir, Options{Seed: 3, Story: StoryIdle}); err != nil ||
		got != (Options{Seed: 3, Story: StoryIdle}) {
		t.Fatalf("%+v, %v", got, err)
	}
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "thesis.tex"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		dir   string
		asked Options
		want  Options
		code  session.Code
	}{
		"goes on with what a kept one was begun with": {dir: dir, want: Options{Seed: 3, Story: StoryIdle}},
		"goes on where the same is asked for": {dir: dir, asked: Options{Seed: 3},
			want: Options{Seed: 3, Story: StoryIdle}},
		"refuses another seed": {dir: dir, asked: Options{Seed: 4}, code: "server_start_conflict"},
		"refuses another story": {dir: dir, asked: Options{Story: StoryLab},
			code: "server_start_conflict"},
		"refuses a story that there is not": {dir: t.TempDir(), asked: Options{Story: "heist"},
			code: "server_start_invalid"},
		"refuses a folder with other things in it": {dir: full, code: "server_start_conflict"},
		"has a usual seed and story":               {dir: t.TempDir(), want: Options{Seed: 1, Story: StoryLab}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Claim(c.dir, c.asked)
			if c.code != "" {
				if e := session.AsError(err, "none"); e.Code != c.code || e.Hint == "" {
					t.Errorf("%+v", e)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	if left, err := os.ReadDir(full); err != nil || len(left) != 1 {
		t.Errorf("a folder that was refused has %v, %v", left, err)
	}
}

func TestSweepRemovesWhatNobodyHolds(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	make := func(age time.Duration) place.Home {
		dir, err := Temporary()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Claim(dir, Options{}); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(filepath.Join(dir, markName), at, at); err != nil {
			t.Fatal(err)
		}
		return place.Home{Dir: dir}
	}
	died, young, held := make(time.Hour), make(0), make(time.Hour)
	lab := LabHome(held)
	if err := os.MkdirAll(lab.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := lab.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	other := filepath.Join(os.TempDir(), temporary+"notes")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Sweep(); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{died.Dir: false, young.Dir: true, held.Dir: true, other: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s is there: %v", dir, err)
		}
	}
}

// pipes dials pipes whose other ends it keeps.
type pipes struct{ far []net.Conn }

func (p *pipes) Dial(context.Context, bool) (net.Conn, error) {
	near, far := net.Pipe()
	p.far = append(p.far, far)
	return tunnel.Carrier{Conn: near, Peer: tunnel.Peer{Transport: "tls", Name: "lab"}}, nil
}

func TestLid(t *testing.T) {
	var lid Lid
	world := &pipes{}
	d := lid.Through(world)
	conn, err := d.Dial(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := conn.(tunnel.Carrier); !ok || c.Peer.Name != "lab" {
		t.Errorf("whom it leads to is lost: %#v", conn)
	}
	lid.Close()
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a closed lid lets bytes through: %v", err)
	}
	if _, err := world.far[0].Write([]byte("x")); err == nil {
		t.Error("the far side writes into a connection that was cut")
	}
	var fault *tunnel.Fault
	if _, err := d.Dial(t.Context(), true); !errors.As(err, &fault) || fault.Hint == "" || len(world.far) != 1 {
		t.Errorf("a closed lid lets dial: %v", err)
	}
	lid.Open()
	again, err := d.Dial(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil || len(lid.open) != 0 {
		t.Errorf("%d connections are kept, %v", len(lid.open), err)
	}
}

func TestStoriesAreSound(t *testing.T) {
	for _, story := range Stories {
		o := Options{Seed: 1, Story: story}
		for machine, acts := range map[string][]Act{"workstation": OnWorkstation(o), "lab": OnLab(o)} {
			names := map[string]bool{}
			for _, act := range acts {
				limits := session.Limits{CPUs: Lab(o).CPUs, Memory: Lab(o).Memory}
				if machine == "workstation" {
					limits = session.Limits{CPUs: Workstation(o).CPUs, Memory: Workstation(o).Memory}
				}
				if wrong := act.Spec.Validate(time.Now(), limits); len(wrong) > 0 {
					t.Errorf("%s of %s on the %s: %+v", act.Spec.Name, story, machine, wrong)
				}
				if names[act.Owner+act.Spec.Name] {
					t.Errorf("%s is launched twice in %s", act.Spec.Name, story)
				}
				names[act.Owner+act.Spec.Name] = true
			}
		}
	}
}

func TestFilesAreWhatTheirNamesPromise(t *testing.T) {
	files := map[string][]byte{}
	for _, name := range []string{"customers.csv", "loss.png", "explore.ipynb", "model.safetensors"} {
		content, err := folders.ReadFile("folders/churn/" + name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = content
	}
	if rows, err := csv.NewReader(bytes.NewReader(files["customers.csv"])).ReadAll(); err != nil || len(rows) != 401 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	if picture, err := png.Decode(bytes.NewReader(files["loss.png"])); err != nil || picture.Bounds().Dx() != 480 {
		t.Error(err)
	}
	var document struct{ Cells []struct{ Source []string } }
	if err := json.Unmarshal(files["explore.ipynb"], &document); err != nil || len(document.Cells) < 3 {
		t.Errorf("%+v, %v", document, err)
	}
	model := files["model.safetensors"]
	length := binary.LittleEndian.Uint64(model)
	header := map[string]struct {
		Offsets [2]int `json:"data_offsets"`
	}{}
	if err := json.Unmarshal(model[8:8+length], &header); err != nil ||
		8+int(length)+header["dense.weight"].Offsets[1] != len(model) {
		t.Errorf("%+v, %v", header, err)
	}
}
