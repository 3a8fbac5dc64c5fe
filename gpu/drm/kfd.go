package drm

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"slipway/gpu"
)

// AMD's compute interface (KFD) numbers devices in its own way and lists the
// processes that compute, with their memory, for everybody to see.

// kfdID finds the number of the device that has a render node.
func (s *Source) kfdID(render string) string {
	minor := strings.TrimPrefix(render, "renderD")
	nodes, err := filepath.Glob(filepath.Join(s.root, "sys/class/kfd/kfd/topology/nodes/*/properties"))
	if err != nil {
		return ""
	}
	for _, file := range nodes {
		properties, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(properties)) {
			if fields := strings.Fields(line); len(fields) == 2 && fields[0] == "drm_render_minor" &&
				fields[1] == minor {
				id, err := os.ReadFile(filepath.Join(filepath.Dir(file), "gpu_id"))
				if err != nil {
					return ""
				}
				return strings.TrimSpace(string(id))
			}
		}
	}
	return ""
}

// kfdMemory is the memory of each process that computes on a device.
func (s *Source) kfdMemory(c card) map[int]gpu.Bytes {
	if c.kfd == "" {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(s.root, "sys/class/kfd/kfd/proc/*/vram_"+c.kfd))
	if err != nil {
		return nil
	}
	found := map[int]gpu.Bytes{}
	for _, file := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
			found[pid] = gpu.Bytes(n)
		}
	}
	return found
}
