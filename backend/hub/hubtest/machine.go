package hubtest

import (
	"context"
	"fmt"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

type machine struct {
	*base
	// Probe fails if the machine cannot be checked.
	Probe func(context.Context) error

	board *session.DeviceBoard // guarded by mu, like the fields below
	rows  []session.Account
	span  session.AccountSpan
}

// SetBoard sets what Devices returns and sends an event.
func (a *machine) SetBoard(board session.DeviceBoard) {
	a.do(func() {
		a.board = &board
		a.tell(session.Event{Devices: &board})
	})
}

// SetAccounts sets what Accounts returns for every span.
func (a *machine) SetAccounts(rows ...session.Account) { a.do(func() { a.rows = rows }) }

// Span returns the last span passed to Accounts.
func (a *machine) Span() session.AccountSpan { return read(a.base, &a.span) }

func (a *machine) devices(context.Context) (session.DeviceBoard, error) {
	if a.board == nil {
		return session.DeviceBoard{Source: "none", Text: "This machine has no devices."}, nil
	}
	return *a.board, nil
}

// deviceHistory has one sample, a second after since.
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

// doctor finds no problems.
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

// listDirectories knows only /data.
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
