package server_test

import (
	"testing"
	"time"

	"slipway/backend/api"
	"slipway/backend/session"
	"slipway/gpu"
)

func TestASessionIsComparedWithTheLastSuccess(t *testing.T) {
	w := start(t)
	begin := time.Now().Add(-24 * time.Hour).UTC()
	number := 0
	put := func(name, owner, image, command string, result session.Result, memory gpu.Bytes) session.Session {
		number++
		created := begin.Add(time.Duration(number) * time.Hour)
		return w.agent.Put(session.Session{ID: session.NewID(), Name: name, Owner: owner, Status: session.Terminated,
			Spec: session.Spec{Name: name, Type: session.Batch, Image: image, Command: command,
				Resources: session.Resources{CPU: 1, Memory: memory}},
			End: session.End{Result: result}, CreatedAt: created,
			Times: session.Times{StartedAt: &created, TerminatedAt: new(created.Add(time.Minute))}})
	}
	const success, failure = session.ResultSuccess, session.ResultFailure
	put("nightly", "ada", "a:1", "train", success, gpu.GiB)
	named := put("nightly", "ada", "b:1", "other", success, 4*gpu.GiB)
	like := put("by-hand", "ada", "a:1", "train", success, gpu.GiB)
	put("nightly", "ada", "a:1", "train", failure, gpu.GiB)
	put("nightly", "eve", "a:1", "train", success, gpu.GiB)
	for _, c := range []struct {
		name string
		of   session.Session
		want session.ID
	}{
		{"of the name", put("nightly", "ada", "a:1", "train", failure, gpu.GiB), named.ID},
		{"of the recipe", put("renamed", "ada", "docker.io/library/a:1", "train", failure, 2*gpu.GiB), like.ID},
		{"none", put("alone", "ada", "c:1", "train", failure, gpu.GiB), ""},
	} {
		put(c.of.Name, "ada", c.of.Spec.Image, "train", success, gpu.GiB) // later
		var got api.SuccessComparison
		if status := w.call(t, "GET", "/api/v1/sessions/"+string(c.of.ID)+"/last-success", "", &got); status != 200 ||
			got.This.Session.ID != c.of.ID {
			t.Fatalf("%s: %d %+v", c.name, status, got)
		}
		switch {
		case c.want == "" && got.Success == nil:
		case got.Success == nil || got.Success.Session.ID != c.want:
			t.Errorf("%s: compared with %+v", c.name, got.Success)
		}
		memory := map[string]string{}
		for _, f := range got.Spec {
			if !f.Same {
				memory[f.Field] = f.Left + " " + f.Right
			}
		}
		if c.want == like.ID && memory["resources.memory"] != "2g 1g" {
			t.Errorf("%s: the settings differ in %v", c.name, memory)
		}
	}
}
