package guest

import (
	_ "embed"

	"slipway/backend/session"
)

// sitecustomize is what Python runs when it starts.
//
//go:embed python/sitecustomize.py
var sitecustomize []byte

const (
	pythonPath = "/var/lib/slipway/python"
	// cooperative is set by the agent for a session that holds a part of a device and whose person wants frameworks to
	// keep to it.
	cooperative = "SLIPWAY_GPU_COOPERATIVE"
)

// cooperate makes PyTorch keep to the session's part of a device: unlike others it takes no limit from a variable that
// all its versions bear.
func (c *container) cooperate() error {
	if wanted, _ := c.env.get(cooperative); wanted != "1" {
		return nil
	}
	dir, err := c.held.tree.image(pythonPath, true)
	if err != nil {
		return cooperateTrouble(err)
	}
	defer dir.close()
	if err := dir.replace("sitecustomize.py", sitecustomize, 0o644); err != nil {
		return cooperateTrouble(err)
	}
	path := pythonPath
	if own, _ := c.env.get("PYTHONPATH"); own != "" {
		path += ":" + own
	}
	c.env = c.env.set("PYTHONPATH", path)
	return nil
}

func cooperateTrouble(err error) error {
	return session.WrapError(err, session.CodeUncooperative,
		"PyTorch does not know this session's share of a device.",
		"Call torch.cuda.set_per_process_memory_fraction with SLIPWAY_GPU_FRACTION.")
}
