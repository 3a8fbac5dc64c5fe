package server

import (
	"encoding/json"
	"testing"
	"time"

	"slipway/backend/api"
	"slipway/backend/session"
	"slipway/gpu"
)

func TestListsAreNeverNull(t *testing.T) {
	at := time.Date(2031, 5, 1, 12, 0, 0, 0, time.UTC)
	s := api.Session{Session: session.Session{ID: "a", CreatedAt: at, Allocation: session.Allocation{
		Grants:  session.Grants{Memory: gpu.GiB},
		Kernels: []session.Kernel{{Name: "main1"}},
	}}}
	text, err := encode(map[string]any{"one": &s, "none": []int(nil), "nothing": nil})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		One struct {
			Kernels []struct{ Grants struct{ CPUs, GPUs *[]int } }
			Grants  struct{ CPUs *[]int }
			Tags    *[]string
			Ports   *[]int
			Created time.Time `json:"createdAt"`
		}
		None    *[]int
		Nothing *int
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.One.Grants.CPUs == nil || got.One.Tags == nil || got.One.Kernels[0].Grants.GPUs == nil || got.None == nil {
		t.Errorf("a list is null in %s", text)
	}
	if got.One.Ports != nil || got.Nothing != nil || !got.One.Created.Equal(at) {
		t.Errorf("%s has more than it was made of", text)
	}
	if s.Tags != nil || s.Kernels[0].Grants.CPUs != nil {
		t.Error("what was written was changed")
	}
}
