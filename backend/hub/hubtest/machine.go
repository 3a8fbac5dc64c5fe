package hubtest

import (
	"context"
	"fmt"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// machine is that of an agent.
type machine struct {
	*base
	// Probe fails where the machine cannot be probed.
	Probe func(context.Context) error

	board *session.DeviceBoard // guarded by mu, as what follows
	rows  []session.Account
	span  session.AccountSpan
}

// SetBoard says what Devices returns and tells of it.
func (a *machine) SetBoard(board session.DeviceBoard) {
	a.do(func() {
		a.board = &board
		a.tell(session.Event{Devices: &board})
	})
}

// SetAccounts says what Accounts returns, whatever the span.
func (a *machine) SetAccounts(rows ...session.Account) { a.do(func() { a.rows = rows }) }

// Span is the last span of accounts that was asked for.
func (a *machine) Span() (span session.AccountSpan) {
	a.do(func() { span = a.span })
	return span
}

func (a *machine) devices(context.Context) (session.DeviceBoard, error) {
	if a.board == nil {
		return session.DeviceBoard{Source: "none", Text: "This machine has no devices."}, nil
	}
	return *a.board, nil
}

// deviceHistory has one point a second after since.
func (a *machine) deviceHistory(ctx context.Context, device gpu.UUID, since time.Time) ([]session.DevicePoint, error) {
	board, _ := a.devices(ctx) // it never fails
	for _, d := range board.Devices {
		if d.Device.UUID == device {
			return []session.DevicePoint{{At: since.Add(time.Second), Util: d.Util, MemoryUsed: d.MemoryUsed,
				Power: d.Power, Temperature: d.Temperature}}, nil
		}
	}
	return nil, failed(session.CodeDeviceNotFound, fmt.Sprintf("There is no device %q.", device))
}

func (a *machine) accounts(_ context.Context, span session.AccountSpan) ([]session.Account, error) {
	a.span = span
	return a.rows, nil
}

// doctor finds that everything is well.
func (a *machine) doctor(ctx context.Context) ([]session.Check, error) {
	if a.Probe != nil {
		a.mu.Unlock()
		err := a.Probe(ctx)
		a.mu.Lock()
		if err != nil {
			return nil, err
		}
	}
	return []session.Check{{ID: "engine", Title: "Container engine", Result: session.CheckOK,
		Text: a.Name + " answers."}}, nil
}

// listDirectories knows /data alone.
func (a *machine) listDirectories(_ context.Context, path string) (session.DirectoryListing, error) {
	switch path {
	case "/":
		return session.DirectoryListing{Path: "/", Entries: []session.DirectoryEntry{{Name: "data", Writable: true}}},
			nil
	case "", "/data":
		return session.DirectoryListing{Path: "/data", Parent: "/", Entries: []session.DirectoryEntry{}}, nil
	}
	return session.DirectoryListing{}, failed(session.CodeFileNotFound, "There is no directory "+path+".")
}
