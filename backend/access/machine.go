package access

import (
	"context"
	"path"
	"slices"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// anothers is what stands in the place of the names of what is others'.
const anothers = "another person's session"

// outside is the name of programs that are no session's: what people run outside
// of Slipway on the machine is not for its users to know.
const outside = "a program outside Slipway"

// ListDirectories implements [session.Host]. A user sees the folders that are
// open to them, as if the machine had nothing else.
func (v *view) ListDirectories(ctx context.Context, at string) (session.DirectoryListing, error) {
	if v.all {
		listing, err := v.agent.ListDirectories(ctx, at)
		v.note("ListDirectories", "", at, err)
		return listing, err
	}
	folders := v.inner.Allowance(v.who.Owner).Folders
	if at == "" || path.Clean(at) == "/" {
		listing := session.DirectoryListing{Path: "/", Entries: []session.DirectoryEntry{}}
		for _, folder := range slices.Sorted(slices.Values(folders)) {
			listing.Entries = append(listing.Entries, session.DirectoryEntry{Name: folder[1:], Writable: true})
		}
		return listing, nil
	}
	if at = path.Clean(at); slices.Contains(folders, at) {
		return session.DirectoryListing{Path: at, Parent: "/", Entries: []session.DirectoryEntry{}}, nil
	}
	err := session.NewError(session.CodeFileNotFound, "You may not use that directory, or it does not exist.",
		"Choose one that is listed.")
	v.note("ListDirectories", "", at, err)
	return session.DirectoryListing{}, err
}

func (v *view) Devices(ctx context.Context) (session.DeviceBoard, error) {
	board, err := v.agent.Devices(ctx)
	return v.board(board), err
}

// board takes the names of what is others' out of a board, which is not
// changed.
func (v *view) board(b session.DeviceBoard) session.DeviceBoard {
	if v.all {
		return b
	}
	b.Devices = slices.Clone(b.Devices)
	for i := range b.Devices {
		holders := slices.Clone(b.Devices[i].Holders)
		for k, h := range holders {
			switch {
			case h.PID != 0:
				h.Name, h.Owner, h.PID = outside, "", 0
			case h.Owner != v.who.Owner:
				h.Session, h.Name, h.Owner = "", anothers, ""
			}
			holders[k] = h
		}
		b.Devices[i].Holders = holders
	}
	return b
}

// Accounts implements [session.Accelerators]. What others used is summed up, so
// that what a device counted is still all there.
func (v *view) Accounts(ctx context.Context, span session.AccountSpan) ([]session.Account, error) {
	rows, err := v.agent.Accounts(ctx, span)
	if v.all {
		return rows, err
	}
	type slot struct {
		start  time.Time
		device gpu.UUID
	}
	sums := map[slot]int{}
	told := make([]session.Account, 0, len(rows))
	for _, row := range rows {
		if row.Owner == v.who.Owner || row.Session == "" && row.Owner == "" {
			told = append(told, row)
			continue
		}
		row.Session, row.Name, row.Owner, row.Label = "", anothers, "", ""
		at := slot{row.Start, row.Device}
		if i, known := sums[at]; known {
			told[i].Add(row)
			continue
		}
		sums[at] = len(told)
		told = append(told, row)
	}
	return told, err
}
