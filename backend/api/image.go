package api

import "slipway/backend/session"

// ImageDisk is the disk use of a machine's images. They share layers, so the sum of their sizes is more than they use
// together.
type ImageDisk struct {
	session.ImageDisk
	Agent string `json:"agent"`
}

// ImagePull pulls an image from a registry.
type ImagePull struct {
	Image string `json:"image"`           // as for docker pull
	Agent string `json:"agent,omitempty"` // whose machine; empty: this computer's
}

// ImageRemoval removes images.
type ImageRemoval struct {
	Images []string `json:"images"`          // names or ids
	Agent  string   `json:"agent,omitempty"` // whose machine; empty: this computer's
}

// Commit creates an image from a running interactive session.
type Commit struct {
	Name string `json:"name"` // 4 to 32 letters, digits, _ and -
}

// EnvironmentFile is the user's own catalogue of environments.
type EnvironmentFile struct {
	Path string `json:"path"` // on this computer; the file need not exist
	// why it cannot be used; until it is fixed, Slipway's own environments are offered
	Problem *session.Error `json:"problem,omitempty"`
}
