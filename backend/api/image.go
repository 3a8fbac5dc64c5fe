package api

import "time"

// Image is an image that is on an agent's machine.
type Image struct {
	ID        string            `json:"id"`
	Refs      []string          `json:"refs"`
	Size      int64             `json:"size"`
	CreatedAt time.Time         `json:"createdAt"`
	Arch      string            `json:"arch"`
	Labels    map[string]string `json:"labels"`
	Agent     string            `json:"agent"`
	Origin    *ImageOrigin      `json:"origin,omitempty"` // absent: it was not made of a session
	UsedBy    []ImageUser       `json:"usedBy"`           // live sessions
}

// ImageOrigin says what a customized image was made of.
type ImageOrigin struct {
	Name        string `json:"name"` // as its owner named it
	Owner       string `json:"owner"`
	Session     string `json:"session"`
	SessionName string `json:"sessionName"`
	Base        string `json:"base"` // image that the session began with
	// that it was kept in when its session ended; absent: a person asked for it
	Series string `json:"series,omitempty"`
}

// ImageUser is a live session that uses an image.
type ImageUser struct {
	Session string `json:"session"` // empty: another person's
	Name    string `json:"name"`
}

// ImageDisk is what images take on a machine's disk. They share layers, so the
// sum of their sizes is more than what they take together.
type ImageDisk struct {
	Agent  string      `json:"agent"`
	Total  int64       `json:"total"` // all layers, each once
	Images []ImageRoom `json:"images"`
}

// ImageRoom is what one image takes.
type ImageRoom struct {
	Image      Image `json:"image"`
	Alone      int64 `json:"alone"`      // is free when this image goes and no other
	Containers int   `json:"containers"` // that use it, anybody's
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

// Environment is an image family that the launcher offers.
type Environment struct {
	ID       string               `json:"id"`
	Title    string               `json:"title"`
	Icon     string               `json:"icon"`
	Summary  string               `json:"summary"`
	Versions []EnvironmentVersion `json:"versions"`

	Accelerator string `json:"accelerator,omitempty"` // none, optional or required; absent: none
	MinCPU      int    `json:"minCpu,omitempty"`      // least that it needs; absent: not said
	MinMemory   int64  `json:"minMemory,omitempty"`
}

// EnvironmentFile is a person's own catalogue of environments.
type EnvironmentFile struct {
	Path string `json:"path"` // where it is looked for, on this computer
	// why it cannot be used; until it is mended Slipway's own environments are offered
	Problem *Problem `json:"problem,omitempty"`
}

// EnvironmentVersion is one image of a family.
type EnvironmentVersion struct {
	Title     string `json:"title"`
	Image     string `json:"image"`
	Installed bool   `json:"installed"`
	Size      int64  `json:"size"` // bytes on disk if installed, else an estimate of the download; 0 if unknown

	Custom *ImageOrigin `json:"custom,omitempty"` // absent: it was not made of a session
	Agents []string     `json:"agents"`           // those that have it
}
