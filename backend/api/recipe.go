package api

import (
	"time"

	"slipway/backend/session"
)

// Recipe is a spec to keep, to share and to run again: as a file, as a line for
// the shell, and as the nearest that Docker alone can do.
type Recipe struct {
	Name     string `json:"name"`
	FileName string `json:"fileName"`
	// its image pinned by digest where one is known; without the values of secret-looking variables
	Spec    session.Spec `json:"spec"`
	YAML    string       `json:"yaml"`
	Command string       `json:"command"`          // the equivalent slipway run line
	Docker  string       `json:"docker"`           // the nearest docker run line
	Pinned  bool         `json:"pinned"`           // the image is named by its digest
	Secrets []string     `json:"secrets"`          // variables whose values are not kept
	Lacks   []string     `json:"lacks"`            // what the docker run line leaves out, one sentence each
	Passed  *time.Time   `json:"passed,omitempty"` // the start time of the launch, left out since it has passed
}

// RecipeText is a recipe as it stands in a file.
type RecipeText struct {
	YAML string `json:"yaml"`
}

// RecipePair are two specs to be compared.
type RecipePair struct {
	Left  session.Spec `json:"left"`
	Right session.Spec `json:"right"`
}

// LinkText is an address of the scheme slipway.
type LinkText struct {
	URL string `json:"url"`
}
