// Package demo is what a demonstration is made of: the two machines that it pretends to have, the stories that are told
// on them, the switch that cuts the tunnel between them, and the mark that keeps its folder apart from real ones. All
// of it is data and small rules; the agents, the scheduler, the books and the tunnel that the data go through are those
// of the product.
package demo

import (
	"fmt"
	"slices"
	"strings"

	"slipway/backend/session"
)

// Story is which situation a demonstration shows.
type Story string

// The stories. Workstation has this one machine only; the others have the lab server behind the tunnel as well. Lab is
// everyday work on both. In shortage the lab server is full and a queue waits; in idle a session is about to be
// reclaimed; in failure sessions end in different ways, each with its reason.
const (
	StoryWorkstation Story = "workstation"
	StoryLab         Story = "lab"
	StoryShortage    Story = "shortage"
	StoryIdle        Story = "idle"
	StoryFailure     Story = "failure"
)

// Stories are all of them, the usual one first.
var Stories = []Story{StoryLab, StoryWorkstation, StoryShortage, StoryIdle, StoryFailure}

// HasLab reports whether the lab server belongs to the story.
func (s Story) HasLab() bool { return s != StoryWorkstation }

// Options are what a demonstration follows from. Zero fields were not asked for.
type Options struct {
	Seed  uint64 `json:"seed"`
	Story Story  `json:"story"`
	// Speed is how much faster time goes by than on the wall. A demonstration that is kept may go on with another.
	Speed int `json:"-"`
}

// withDefaults fills in what was not asked for.
func (o Options) withDefaults() Options {
	if o.Seed == 0 {
		o.Seed = 1
	}
	if o.Story == "" {
		o.Story = Stories[0]
	}
	return o
}

// MostSpeed is how much faster time may go by.
const MostSpeed = 60

// check fails with server_start_invalid where there is no such story or speed.
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

// Person is who the demonstration is told of; the lab server has others, too.
const Person = "ada"
