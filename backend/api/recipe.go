package api

import (
	"time"

	"slipway/backend/session"
)

// Recipe is a spec to store, share and run again: as a file, as a command line, and as the closest docker command line.
type Recipe struct {
	Name     string `json:"name"`
	FileName string `json:"fileName"`
	// its image pinned by digest if known; without the values of secret-looking variables
	Spec    session.Spec `json:"spec"`
	YAML    string       `json:"yaml"`
	Command string       `json:"command"`          // equivalent slipway run line
	Docker  string       `json:"docker"`           // closest docker run line
	Pinned  bool         `json:"pinned"`           // the image is named by its digest
	Secrets []string     `json:"secrets"`          // variables whose values are left out
	Lacks   []string     `json:"lacks"`            // what the docker run line lacks, one sentence each
	Passed  *time.Time   `json:"passed,omitempty"` // start time that is left out because it has passed
}

// RecipeText is the text of a recipe file.
type RecipeText struct {
	YAML string `json:"yaml"`
}

// RecipePair has two specs to compare.
type RecipePair struct {
	Left  session.Spec `json:"left"`
	Right session.Spec `json:"right"`
}

// LinkText is a slipway:// link.
type LinkText struct {
	URL string `json:"url"`
}
