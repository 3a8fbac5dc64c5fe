package api

import "slipway/backend/session"

// ImageDisk is what images take on a machine's disk. They share layers, so the
// sum of their sizes is more than what they take together.
type ImageDisk struct {
	session.ImageDisk
	Agent string `json:"agent"`
}

// ImagePull asks for an image of a registry.
type ImagePull struct {
	Image string `json:"image"`           // as for docker pull
	Agent string `json:"agent,omitempty"` // whose machine; empty: this computer
}

// ImageRemoval asks for images to be removed.
type ImageRemoval struct {
	Images []string `json:"images"`          // names or ids
	Agent  string   `json:"agent,omitempty"` // on whose machine; empty: this computer
}

// Commit asks for an image of a running interactive session.
type Commit struct {
	Name string `json:"name"` // 4 to 32 letters, digits, _ and -
}

// EnvironmentFile is a person's own catalogue of environments.
type EnvironmentFile struct {
	Path string `json:"path"` // where it is looked for, on this computer
	// why it cannot be used; until it is mended Slipway's own environments are offered
	Problem *session.Error `json:"problem,omitempty"`
}
