// Package slurm is the client of Slurm's commands: it submits jobs, follows them and says what a site has.
//
// Everything that a command prints comes from elsewhere: it is bounded, and read at one place into types that cannot
// hold a bad value. States and reasons that are not in the tables have values of their own, and are shown as Slurm
// says them. Slurm 22.05 is the reference.
package slurm

import (
	"cmp"
	"context"
	"log/slog"
	"sync"

	"slipway/backend/pace"
)

// Run runs one of Slurm's commands and returns what it printed on standard output. The error of a command that ran and
// failed is a *[Failure]. [Exec] is the real one.
type Run func(ctx context.Context, name string, args []string, stdin []byte) (stdout []byte, err error)

// Config configures a Client.
type Config struct {
	Run   Run          // nil: [Exec]
	Clock *pace.Clock  // nil: the clock on the wall
	Log   *slog.Logger // nil: none
	User  string       // name or number of the user whose jobs they are
}

// Client calls Slurm's commands as one user. It is safe for concurrent use.
type Client struct {
	config Config
	calls  calls

	mu         sync.Mutex // guards submitting
	submitting map[JobName]bool
}

// New returns a client. It calls no command yet.
func New(config Config) *Client {
	if config.Run == nil {
		config.Run = Exec
	}
	config.Log = cmp.Or(config.Log, slog.New(slog.DiscardHandler))
	return &Client{config: config, submitting: map[JobName]bool{}}
}
