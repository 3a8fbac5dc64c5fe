//go:build linux

package slurm_test

import (
	"fmt"
	"testing"

	"slipway/backend/session"
	"slipway/backend/session/agenttest"
)

// conforms has the suite that every agent must pass run against one on the login node.
func (l login) conforms(t *testing.T) {
	agenttest.Run(t, func(t *testing.T) session.Agent { return l.manage(t).Agent }, agenttest.Options{
		Image: loginImage, Server: fmt.Sprintf("python3 -m http.server %d --bind 127.0.0.1", agenttest.ServerPort),
		Without: map[string]string{
			"a session is made an image, which is used and removed":  noCommit,
			"an end makes an image and keeps the newest of its name": noCommit,
			"a session is parked with its home and continued":        noCommit,
			"a project in a folder is read, and built once":          "Slurm builds no images",
			"the queue's order is changed while a session waits":     "Slurm lets its users lower priorities only",
		},
	})
}
