package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"slipway/backend/engine"
	"slipway/backend/session"
)

// prepare puts everything that the container consists of on this node and returns its plan.
func (r *runner) prepare(node *local) (p *plan, err error) {
	p = &plan{Box: r.spec.Box, Dir: r.place, Home: filepath.Join(r.dir, homeFolder), Hostname: r.kernel,
		Variables: variables(r.spec.Env, r.kernel, r.exit.Host), Made: r.spec.Runner == Apptainer}
	if p.Files, err = nameFiles(r.spec, r.kernel, nodeFile); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(p.Home, 0o755); err != nil {
		return nil, err
	}
	if p.Layers, err = r.layers(node); err != nil {
		return nil, err
	}
	return p, errors.Join(r.copyGuest(), r.copyConfig())
}

// settle makes and locks the folder of the kernel on this node.
func (r *runner) settle() (*local, error) {
	node, err := openLocal(r.spec.Local)
	if err != nil {
		return nil, err
	}
	place, lock, err := node.open(fmt.Sprintf("%s-%d-%s", r.spec.Session, r.spec.Attempt, r.kernel))
	if err != nil {
		return nil, err
	}
	r.place, r.held = place, append(r.held, lock)
	for _, dir := range []string{rootFolder, upperFolder, workFolder, layerFolder, linkFolder, spoolFolder} {
		if err := os.Mkdir(filepath.Join(place, dir), 0o700); err != nil {
			return nil, err
		}
	}
	return node, os.Chmod(filepath.Join(place, upperFolder), 0o755) // it is the container's root
}

// layers unpacks what this node lacks. An image without layers has an empty one.
func (r *runner) layers(node *local) ([]string, error) {
	var dirs []string
	for _, digest := range r.spec.Layers {
		dir, lock, err := node.layer(r.asked, r.spec.Store, digest)
		if err != nil {
			return nil, err
		}
		dirs, r.held = append(dirs, dir), append(r.held, lock)
	}
	if len(dirs) > 0 {
		return dirs, nil
	}
	empty := filepath.Join(r.place, "empty")
	return []string{empty}, os.Mkdir(empty, 0o755)
}

// copyGuest copies this program to the node, where an upgrade does not remove it.
func (r *runner) copyGuest() error {
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(filepath.Join(r.place, guestCopy), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// copyConfig gives the guest its configuration, for the only user that there is.
func (r *runner) copyConfig() error {
	config, err := read(GuestFile(r.dir, r.kernel), maxGuest, func(engine.GuestConfig) error { return nil })
	if err != nil {
		return err
	}
	config.UID, config.GID, config.Groups, config.Admin = os.Getuid(), os.Getgid(), nil, false
	data, err := json.Marshal(config)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.place, configCopy), data, 0o600)
}

// passed are the variables of a job by which programs find its devices.
var passed = []string{"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
	"ZE_AFFINITY_MASK"}

// variables are those of the image, as Docker completes them, of the job's devices, and the name of the node.
func variables(image []session.EnvVar, host, node string) []string {
	list := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOSTNAME=" + host}
	for _, v := range image {
		list = append(list, v.Name+"="+v.Value)
	}
	for _, name := range passed {
		if value, ok := os.LookupEnv(name); ok {
			list = append(list, name+"="+value)
		}
	}
	return append(list, "SLIPWAY_NODE="+node)
}
