package main

import (
	"testing"
	"time"

	"slipway/backend/demo"
)

// TestADemoIsServedForAWhile is the first 20 minutes of what make soak does for 60 hours.
func TestADemoIsServedForAWhile(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes 20 s")
	}
	s := soak{speed: demo.MostSpeed, length: 20 * time.Second, every: 4 * time.Second, seed: 1, quick: true}
	if err := s.run(t.Context()); err != nil {
		t.Error(err)
	}
}
