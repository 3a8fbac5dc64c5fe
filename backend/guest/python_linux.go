package guest

import (
	_ "embed"

	"slipway/backend/session"
)

// sitecustomize is a module that Python runs when it starts.
//
//go:embed python/sitecustomize.py
var sitecustomize []byte

const (
	pythonPath = "/var/lib/slipway/python"
	// cooperative is set by the agent if frameworks should limit themselves to the session's part of a device.
	cooperative = "SLIPWAY_GPU_COOPERATIVE"
)

// cooperate makes PyTorch limit itself to the session's part of a device. No environment variable does that in all of
// its versions.
func (c *container) cooperate() error {
	if c.env.get(cooperative) != "1" {
		return nil
	}
	dir, err := c.held.tree.image(pythonPath, true)
	if err == nil {
		err = dir.replace("sitecustomize.py", sitecustomize, 0o644)
		dir.close()
	}
	if err != nil {
		return session.WrapError(err, session.CodeUncooperative,
			"PyTorch does not know this session's share of a device.",
			"Call torch.cuda.set_per_process_memory_fraction with SLIPWAY_GPU_FRACTION.")
	}
	path := pythonPath
	if own := c.env.get("PYTHONPATH"); own != "" {
		path += ":" + own
	}
	c.env = c.env.set("PYTHONPATH", path)
	return nil
}
