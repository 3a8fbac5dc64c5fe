package project

import (
	"fmt"
	"strconv"
	"strings"

	"slipway/backend/session"
	"slipway/gpu"
)

// needs takes over the least resources.
func (p *Plan) needs(d devContainer) (err error) {
	p.Minimum.CPU = max(d.Needs.CPUs, 0)
	p.Minimum.Memory, err = amount("hostRequirements.memory", d.Needs.Memory)
	if err != nil {
		return err
	}
	const key = "hostRequirements.gpu"
	switch asked := d.Needs.GPU.(type) {
	case nil:
	case bool:
		if asked {
			p.Accelerator.Devices = 1
		}
	case map[string]any:
		if p.Accelerator.Memory, err = amount(key+".memory", asked["memory"]); err != nil {
			return err
		}
		if p.Accelerator.Memory == 0 {
			p.Accelerator.Devices = 1
		}
		p.leaveOthers(key+".", asked, []string{"memory"})
	default:
		switch {
		case asked != "optional":
			return invalid(key, fmt.Sprintf("%q is no answer to whether a GPU is needed.",
				session.Clip(fmt.Sprint(asked))), `Write true, false, "optional", or an object with memory.`)
		case p.place.Devices:
			p.Accelerator.Devices = 1
		default:
			p.leave(key, "projectNoDevice")
		}
	}
	return nil
}

// amount reads an amount of memory; 0 if there is none.
func amount(key string, value any) (gpu.Bytes, error) {
	if value == nil || value == "" {
		return 0, nil
	}
	text, _ := value.(string)
	read, err := gpu.ParseBytes(strings.ToLower(text))
	if err != nil {
		return 0, invalid(key, fmt.Sprintf("%q is no amount of memory.", session.Clip(fmt.Sprint(value))),
			"Write it as 4gb.")
	}
	return read, nil
}

// runArgs takes over the arguments of docker run that mean something for a session, and returns the variables.
func (p *Plan) runArgs(args []string) map[string]string {
	run := dockerRun{plan: p, env: map[string]string{}}
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(args[i], "=")
		if short := args[i]; len(short) > 2 && (short[:2] == "-e" || short[:2] == "-m") {
			name, value, joined = short[:2], strings.TrimPrefix(short[2:], "="), true
		}
		if !joined && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			i++
			value = args[i]
		}
		if !run.take(name, value) {
			p.leave("runArgs "+name, "projectRunArg")
		}
	}
	return run.env
}

// dockerRun is what arguments of docker run become: a part of the plan, and variables.
type dockerRun struct {
	plan *Plan
	env  map[string]string
}

// take reports whether an argument has been taken over, or asks for what every session has.
func (r dockerRun) take(name, value string) bool {
	least := &r.plan.Minimum
	switch name {
	case "--init", "--rm":
		return true
	case "-e", "--env":
		variable, content, assigned := strings.Cut(value, "=")
		if assigned { // else it would be one of the person's computer
			r.env[variable] = r.plan.value("runArgs "+name+" "+variable, content)
		}
		return assigned
	case "-m", "--memory", "--shm-size":
		read, err := gpu.ParseBytes(strings.ToLower(value))
		switch {
		case err != nil:
			return false
		case name == "--shm-size":
			least.Shm = read
		default:
			least.Memory = max(least.Memory, read)
		}
		return true
	case "--cpus":
		count, err := strconv.ParseFloat(value, 64)
		if err != nil || count <= 0 || count >= 1e6 {
			return false
		}
		least.CPU = max(least.CPU, int(count+0.999))
		return true
	case "--gpus":
		return r.gpus(value)
	}
	return false
}

// gpus reports whether a number of GPUs has been taken over. All of a machine become one, which is said.
func (r dockerRun) gpus(value string) bool {
	has := &r.plan.Accelerator
	count, err := strconv.Atoi(value)
	if value == "all" {
		count, err = max(has.Devices, 1), nil
		r.plan.leave("runArgs --gpus all", "projectAllDevices")
	}
	asked := gpu.Request{Devices: count}
	if err != nil || asked.Validate() != nil {
		return false
	}
	if !asked.IsZero() && has.Memory == 0 {
		*has = asked
	}
	return true
}
