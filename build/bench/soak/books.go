package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"slipway/backend/place"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/build/bench/measure"
	"slipway/gpu"
)

// judgeBooks fails if the records of a machine contradict each other, its accounts do not balance, or a session is not
// charged for the time that it had devices.
func judgeBooks(home place.Home) (err error) {
	books, err := store.Open(store.Config{Path: home.Join("sim", "agent.db")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, books.Close()) }()
	var errs []error
	err = measure.Run(func() {
		for _, problem := range measure.Get(books.Check()) {
			errs = append(errs, fmt.Errorf("%s: %s", home.Dir, problem))
		}
		var state gpu.State
		measure.Get(books.Account("gpu/state", &state))
		errs = append(errs, gpu.NewAccounts(state).Check()...)
		errs = append(errs, judgeCharges(books)...)
	})
	return errors.Join(append(errs, err)...)
}

// judgeCharges compares what sessions had with what they are charged.
func judgeCharges(books *store.Store) (errs []error) {
	charged := map[string]gpu.Counters{}
	measure.OK(books.EachAccount("gpu/row/", "gpu/row0", func(_ string, data []byte) error {
		var row gpu.Row
		if err := json.Unmarshal(data, &row); err != nil {
			return err
		}
		sum := charged[row.Session]
		sum.Add(row.Counters)
		charged[row.Session] = sum
		return nil
	}))
	ended := measure.Get(books.List(session.Filter{Finished: true}))
	held := 0
	for _, s := range ended {
		var share gpu.Share
		for _, g := range s.Grants.GPUs {
			share += g.Share
		}
		if share == 0 || s.StartedAt == nil || s.TerminatedAt == nil {
			continue
		}
		held++
		want := int64(share) * s.TerminatedAt.Sub(*s.StartedAt).Milliseconds() / int64(gpu.WholeDevice)
		// Rows are in whole milliseconds, one for each device.
		if got := charged[string(s.ID)].AllocGPUMs; got < want-int64(2*len(s.Grants.GPUs)) ||
			got > want+int64(2*len(s.Grants.GPUs)) {
			errs = append(errs, fmt.Errorf("%s held %d GPU-ms and is charged %d", s.Name, want, got))
		}
	}
	fmt.Printf("%d sessions have ended, %d of them held devices\n", len(ended), held)
	return errs
}

// judgeLogs fails if a log has warnings or errors.
func judgeLogs(home place.Home) error {
	var errs []error
	for _, path := range []string{home.LogFile(), home.Join("lab", "agent.log")} {
		data, err := os.ReadFile(path)
		errs = append(errs, err)
		for line := range strings.Lines(string(data)) {
			if strings.Contains(line, "an agent is not reached") {
				continue // the lid was closed
			}
			if strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR") {
				errs = append(errs, fmt.Errorf("%s: %s", path, strings.TrimSpace(line)))
			}
		}
	}
	return errors.Join(errs...)
}
