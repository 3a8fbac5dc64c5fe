package queue

import (
	"fmt"
	"testing"
	"time"

	"slipway/backend/session"
)

func TestNobodyTakesWhatTheStartsOfOthersAreEstimatedBy(t *testing.T) {
	var r runs
	r.known, r.of = true, map[string]int{}
	ended := func(owner string, length time.Duration) {
		from := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		to := from.Add(length)
		r.ended(session.Session{Owner: owner, Spec: session.Spec{Name: "train-1", Type: session.Batch,
			Image: "python:3.12"}, Times: session.Times{StartedAt: &from, TerminatedAt: &to}})
	}
	for range 5 {
		ended("ann", time.Hour)
	}
	for i := range 3 * keepRuns {
		ended(fmt.Sprint("eve", i%2), time.Second)
	}
	if len(r.list) != keepRuns || r.of["ann"] != 5 {
		t.Errorf("of %d runs %d are ann's", len(r.list), r.of["ann"])
	}
}
