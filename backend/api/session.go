package api

import (
	"time"

	"slipway/backend/hub"
	"slipway/backend/recipe"
	"slipway/backend/session"
	"slipway/gpu"
)

// Preview says what a launch would do now.
type Preview struct {
	session.Preview
	Agent      string           `json:"agent"`
	Image      *hub.Image       `json:"image,omitempty"`   // absent: it would be pulled
	Command    string           `json:"command"`           // equivalent slipway run line, secrets removed
	Placements []Placement      `json:"placements"`        // of all kernels; empty while it would wait
	Rounded    *Rounding        `json:"rounded,omitempty"` // absent: the request would be allocated as it is
	Forecasts  []LaunchForecast `json:"forecasts"`         // of each session of the launch, in their order
}

// LaunchForecast is what one session of a launch would do now.
type LaunchForecast struct {
	hub.Forecast
	Placements []Placement `json:"placements"` // of all kernels; empty while it would wait
}

// Rounding says how the allocation would differ from the request. A launch is refused if less would be allocated or a
// share is not a multiple of the quantum; requesting the rounded amount accepts it.
type Rounding struct {
	gpu.Rounding
	Accept string `json:"accept"` // the text to request instead
}

// Placement is the share of one device that a launch would get.
type Placement struct {
	gpu.Grant
	Name string `json:"name"` // for example GPU 0
}

// Recipe is a spec to store, share and run again: as a file, as a command line, and as the closest docker command line.
type Recipe struct {
	Name     string `json:"name"`
	FileName string `json:"fileName"`
	// its image pinned by digest if known; without the values of secret-looking variables
	Spec    session.Spec `json:"spec"`
	YAML    string       `json:"yaml"`
	Command string       `json:"command"`          // equivalent slipway run line
	Docker  string       `json:"docker"`           // closest docker run line
	Sbatch  string       `json:"sbatch,omitempty"` // the script that Slurm is given; absent: its machine has no Slurm
	Pinned  bool         `json:"pinned"`           // the image is named by its digest
	Secrets []string     `json:"secrets"`          // variables whose values are left out
	Lacks   []string     `json:"lacks"`            // what the docker run line lacks, one sentence each
	Passed  *time.Time   `json:"passed,omitempty"` // start time that is left out because it has passed
}

// ServiceRecipe is a service to store, share and deploy again: without tokens and the values of secret-looking
// variables, its image pinned by digest if known.
type ServiceRecipe struct {
	Name     string   `json:"name"`
	FileName string   `json:"fileName"`
	YAML     string   `json:"yaml"`
	Pinned   bool     `json:"pinned"`            // the image is named by its digest
	Secrets  []string `json:"secrets,omitempty"` // variables whose values are left out
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

// SSHSetup says how ssh on this computer reaches sessions.
type SSHSetup struct {
	Installed  bool      `json:"installed"`  // the user's configuration includes ours: ssh NAME works
	PersonFile string    `json:"personFile"` // the user's configuration
	ConfigFile string    `json:"configFile"` // ours, for ssh -F if it is not included
	KeyFile    string    `json:"keyFile"`    // private key for logging in to sessions
	PublicKey  string    `json:"publicKey"`
	Hosts      []SSHHost `json:"hosts"` // in the order in which the sessions were created
}

// SSHHost is a session as ssh knows it.
type SSHHost struct {
	Session string   `json:"session"`
	Names   []string `json:"names"` // shortest first
}

// SSHUpdate includes the configuration of sessions in the user's own, or removes it.
type SSHUpdate struct {
	Installed bool `json:"installed"`
}

// SSHAccess says how to reach one session by ssh.
type SSHAccess struct {
	Names       []string     `json:"names"` // shortest first
	User        string       `json:"user"`
	Fingerprint string       `json:"fingerprint"` // of the session's key
	Installed   bool         `json:"installed"`
	Commands    []SSHCommand `json:"commands"`
	// opens the session in Visual Studio Code; empty: ssh is not installed
	Editor string `json:"editor,omitempty"`
}

// SSHCommand is a command line to copy.
type SSHCommand struct {
	Name string `json:"name"` // ssh, scp, sftp, rsync or forward
	Line string `json:"line"`
}

// SSHTest is the result of a test login to a session.
type SSHTest struct {
	OK        bool  `json:"ok"`
	ElapsedMs int64 `json:"elapsedMs"` // of Slipway's own login
	// this computer's ssh was tested too, by the name in the user's configuration
	Own     bool           `json:"own"`
	Problem *session.Error `json:"problem,omitempty"` // why not
}

// SuccessComparison compares a session with the last one like it that succeeded.
type SuccessComparison struct {
	This    Run            `json:"this"`
	Success *Run           `json:"success,omitempty"` // absent: none is known
	Spec    []recipe.Field `json:"spec"`              // of this session (left) and that one (right)
}

// Run is a session and the most that it used, as far as known.
type Run struct {
	Session    Session   `json:"session"`
	BusyCPUs   float64   `json:"busyCpus,omitempty"` // on average
	MemoryPeak gpu.Bytes `json:"memoryPeak,omitempty"`
	VRAMPeak   gpu.Bytes `json:"vramPeak,omitempty"` // on one device
}
