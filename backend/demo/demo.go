// Package demo has the data and rules of a demonstration: its two simulated machines, the stories on them, the lid that
// cuts the tunnel between them, and the mark of its folder. The agents, the scheduler, the accounts and the tunnel are
// those of the product.
package demo

import (
	"fmt"
	"slices"
	"strings"

	"slipway/backend/session"
)

// Story is the situation that a demonstration shows.
type Story string

// The stories. All but the first have a lab server in addition to the workstation.
const (
	StoryWorkstation Story = "workstation"
	StoryLab         Story = "lab"      // everyday work
	StoryShortage    Story = "shortage" // the lab server is full and sessions wait
	StoryIdle        Story = "idle"     // a session is about to be reclaimed
	StoryFailure     Story = "failure"  // sessions fail for different reasons
)

// Stories has all stories, the default one first.
var Stories = []Story{StoryLab, StoryWorkstation, StoryShortage, StoryIdle, StoryFailure}

// HasLab reports whether the story has the lab server.
func (s Story) HasLab() bool { return s != StoryWorkstation }

// Options determine a demonstration. Zero fields have defaults.
type Options struct {
	Seed  uint64 `json:"seed"`
	Story Story  `json:"story"`
	Speed int    `json:"-"` // how many times faster than real its time passes; it may differ at the next start
}

// MostSpeed is the maximum speed.
const MostSpeed = 60

// check fails with server_start_invalid if the story or speed is invalid.
func (o Options) check() error {
	if o.Speed < 0 || o.Speed > MostSpeed {
		return session.NewError(session.CodeServerInvalid,
			fmt.Sprintf("A demo cannot go by at %d times the usual speed.", o.Speed),
			fmt.Sprintf("Choose a speed from 1 to %d.", MostSpeed))
	}
	if o.Story == "" || slices.Contains(Stories, o.Story) {
		return nil
	}
	names := strings.Trim(strings.ReplaceAll(fmt.Sprint(Stories), " ", ", "), "[]")
	return session.NewError(session.CodeServerInvalid, fmt.Sprintf("There is no story %q.", o.Story),
		"Choose one of "+names+".")
}

// Person is the user of the demonstration; the lab server has other users.
const Person = "ada"
