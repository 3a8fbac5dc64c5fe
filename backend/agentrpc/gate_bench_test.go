package agentrpc

import (
	"encoding/json"
	"fmt"
	"testing"

	"slipway/backend/session"
	"slipway/gpu"
)

// BenchmarkDecode says what checking adds to decoding: run it with -bench Decode.
func BenchmarkDecode(b *testing.B) {
	list := make([]session.Session, 10_000)
	usage := make([]session.Usage, 10_000)
	for i := range list {
		s := told(session.ID(fmt.Sprintf("aaaaaaa%05d", i)))
		s.Pinned, s.Kernels = "python:3.13@sha256:0a0a", []session.Kernel{{Name: "main1", Hostname: "main1",
			Container: "c0ffee", Status: session.Running}}
		s.Spec.Env = []session.EnvVar{{Name: "DEPTH", Value: "50"}, {Name: "HF_HOME", Value: "/home/work/hf"}}
		s.Spec.Mounts = []session.Mount{{Source: "/data/images", Target: "/home/work/images"}}
		s.Tags, s.Revision = []string{"vision"}, 12
		list[i] = s
		util, memory := 5000, 3*gpu.GiB
		usage[i] = session.Usage{Session: s.ID, At: s.CreatedAt, CPU: 1.5, Memory: gpu.GiB, MemLimit: 2 * gpu.GiB,
			Pids: 12, GPUs: []session.DeviceLoad{{Device: "GPU-1", Util: &util, Memory: &memory}}}
	}
	b.Run("sessions/the gate alone", func(b *testing.B) { checkBy(b, &list) })
	b.Run("samples/the gate alone", func(b *testing.B) { checkBy(b, &usage) })
	for name, body := range map[string][]byte{"sessions": mustJSON(b, list), "samples": mustJSON(b, usage)} {
		b.Run(name+"/json alone", func(b *testing.B) { decodeBy(b, name, body, json.Unmarshal, json.Unmarshal) })
		b.Run(name+"/with the gate", func(b *testing.B) {
			decodeBy(b, name, body, decodeInto[[]session.Session], decodeInto[[]session.Usage])
		})
	}
}

func decodeInto[R any](body []byte, to any) error { return decodeReply(body, to.(*R)) }

func decodeBy(b *testing.B, name string, body []byte, sessions, samples func([]byte, any) error) {
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		var err error
		if name == "sessions" {
			var list []session.Session
			err = sessions(body, &list)
		} else {
			var list []session.Usage
			err = samples(body, &list)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

func checkBy(b *testing.B, list any) {
	for b.Loop() {
		if err := gate().Check(list); err != nil {
			b.Fatal(err)
		}
	}
}
