// Package config reads from the settings of a machine how its agent works.
package config

import (
	"errors"
	"fmt"

	"slipway/backend/layers"
	"slipway/backend/session"
	"slipway/gpu"
)

// Agent is how the agent of a machine works.
type Agent struct {
	Shares gpu.Config // how shares of devices are allocated
	Idle   session.IdlePolicy
	Guard  gpu.Policy // what happens to a session that exceeds its share of a device's memory
	// Processes is the most processes and threads in a container; 0: no limit.
	Processes   int
	MPSForUsers bool         // people who are no admins may use MPS
	Images      layers.Quota // of images that people send
	Library     string       // path of NVIDIA's library; empty: a usual one
}

// ReadAgent reads the settings from the environment. It fails rather than
// return anything else than was meant.
func ReadAgent(env func(string) string) (Agent, error) {
	shares, sharesErr := readShares(env)
	idle, idleErr := readIdle(env)
	guard, guardErr := readGuard(env)
	processes, processesErr := readProcesses(env)
	images, imagesErr := readImages(env)
	return Agent{Shares: shares, Idle: idle, Guard: guard, Processes: processes, Images: images,
			MPSForUsers: env("SLIPWAY_GPU_MPS") == "1", Library: env("SLIPWAY_NVML_LIBRARY")},
		errors.Join(sharesErr, idleErr, guardErr, processesErr, imagesErr)
}

// invalid is the failure of a variable of the agent.
func invalid(env func(string) string, name, hint string) error {
	return &session.Error{Code: session.CodeServerInvalid, Message: fmt.Sprintf("%s=%s is not valid.", name, env(name)),
		Hint: hint}
}
