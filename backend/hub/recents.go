package hub

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway/backend/session"
)

// Recent is one entry of the launch history.
type Recent struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Renamed bool   `json:"renamed,omitempty"` // the user chose the name; a new launch does not replace it
	Pinned  bool   `json:"pinned"`
	// without the values of secret-looking variables; names the sessions that it waits for
	Spec       session.Spec `json:"spec"`
	Count      int          `json:"count"`           // sessions launched at once
	Owner      string       `json:"owner,omitempty"` // the owner that an admin launched it for; empty: the user
	LaunchedAt time.Time    `json:"launchedAt"`
	Session    session.ID   `json:"session,omitempty"` // the first session of the latest launch
}

// RecentUpdate changes an entry. A nil field is left unchanged.
type RecentUpdate struct {
	Name   *string `json:"name,omitempty"`
	Pinned *bool   `json:"pinned,omitempty"`
}

// MaxRecentName is the most characters in the name of an entry.
const MaxRecentName = 64

const (
	recentsKey  = "hub.recents"
	recentsKept = 5 // besides pinned ones
)

// Recents returns the launch history, newest first.
func (ps *person) Recents() []Recent {
	return locked(ps.shared, func() []Recent { return append([]Recent{}, ps.recents...) })
}

// pushRecent puts entry on top of recents, with the id, the pin and the chosen name of an equal launch.
func pushRecent(recents []Recent, entry Recent) []Recent {
	rest := make([]Recent, 0, len(recents)+1)
	for _, r := range recents {
		if r.Count != entry.Count || r.Owner != entry.Owner || !alike(r.Spec, entry.Spec) {
			rest = append(rest, r)
			continue
		}
		entry.ID, entry.Pinned = r.ID, r.Pinned
		if r.Renamed {
			entry.Name, entry.Renamed = r.Name, true
		}
	}
	return pruneRecents(append([]Recent{entry}, rest...))
}

// alike reports whether two specs are the same, including their names.
func alike(a, b session.Spec) bool {
	left, _ := json.Marshal(a.WithDefaults()) // they were launched, so they can be encoded
	right, _ := json.Marshal(b.WithDefaults())
	return bytes.Equal(left, right)
}

func pruneRecents(recents []Recent) []Recent {
	return prune(recents, func(r Recent) bool { return r.Pinned })
}

// prune keeps all pinned entries of a list and the first others.
func prune[T any](list []T, pinned func(T) bool) []T {
	others := 0
	return slices.DeleteFunc(list, func(one T) bool {
		others += truth(!pinned(one))
		return !pinned(one) && others > recentsKept
	})
}

// UpdateRecent pins, unpins or renames an entry. It fails with recipe_read_not-found or session_update_invalid.
func (ps *person) UpdateRecent(id string, update RecentUpdate) (Recent, error) {
	var updated Recent
	err := ps.changeRecents(func(recents []Recent) ([]Recent, error) {
		i := slices.IndexFunc(recents, func(r Recent) bool { return r.ID == id })
		if i < 0 {
			return nil, recentNotFound(id)
		}
		r := &recents[i]
		if update.Name != nil {
			name := strings.TrimSpace(*update.Name)
			if !validTitle(name, MaxRecentName) {
				return nil, wrongField(session.CodeSessionInvalid, "name", session.KindInvalid,
					fmt.Sprintf("A name has 1 to %d characters, all of them printable.", MaxRecentName),
					"Choose a shorter name.")
			}
			r.Name, r.Renamed = name, true
		}
		set(&r.Pinned, update.Pinned)
		updated = *r
		return recents, nil
	})
	return updated, err
}

// DeleteRecent deletes an entry. It fails with recipe_read_not-found.
func (ps *person) DeleteRecent(id string) error {
	return ps.changeRecents(func(recents []Recent) ([]Recent, error) {
		rest := slices.DeleteFunc(recents, func(r Recent) bool { return r.ID == id })
		if len(rest) == len(recents) {
			return nil, recentNotFound(id)
		}
		return rest, nil
	})
}

func recentNotFound(id string) error {
	return session.NewError(session.CodeRecipeNotFound, fmt.Sprintf("The launch history has no entry %q.", id),
		"It may have been removed; look at the list again.")
}

// changeRecents saves what change returns for a copy of the history, and publishes it.
func (ps *person) changeRecents(change func([]Recent) ([]Recent, error)) error {
	ps.saving.Lock()
	defer ps.saving.Unlock()
	return ps.saveRecents(change)
}

// saveRecents is changeRecents for a caller that holds saving.
func (ps *person) saveRecents(change func([]Recent) ([]Recent, error)) error {
	err := changeList(ps, recentsKey, &ps.recents, func(recents []Recent) ([]Recent, error) {
		changed, err := change(recents)
		return pruneRecents(changed), err
	}, func() Event { return Event{Recents: new(slices.Clone(ps.recents))} })
	if err == nil {
		ps.pins()
	}
	return err
}

// pinnedSessions returns the first session of the latest launch of each pinned entry.
func (ps *person) pinnedSessions() map[session.ID]bool {
	ids := map[session.ID]bool{}
	for _, r := range ps.Recents() {
		if r.Pinned && r.Session != "" {
			ids[r.Session] = true
		}
	}
	return ids
}

// changeList saves what change returns for a copy of a list, and publishes the event that told returns. It calls told
// with mu held. The caller holds saving.
func changeList[T any](ps *person, key string, list *[]T, change func([]T) ([]T, error), told func() Event) error {
	ps.mu.Lock()
	own := append([]T{}, *list...)
	ps.mu.Unlock()
	changed, err := change(own)
	if err != nil {
		return err
	}
	if err := ps.shelf.Save(key, changed); err != nil {
		return err
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	*list = changed
	ps.stream.publish(told())
	return nil
}

// renameAgent renames an agent in the history and the remembered projects. The caller holds saving.
func (ps *person) renameAgent(before, after string) {
	rename := func(name *string) {
		if *name == before {
			*name = after
		}
	}
	err := errors.Join(ps.saveRecents(func(recents []Recent) ([]Recent, error) {
		for i := range recents {
			rename(&recents[i].Spec.Agent)
		}
		return recents, nil
	}), ps.saveProjects(func(known []RecentProject) ([]RecentProject, error) {
		for i := range known {
			rename(&known[i].Agent)
		}
		return known, nil
	}))
	if err != nil {
		ps.log.Error("the launch history or the projects are not saved", "error", err)
	}
}

// load loads everything that belongs to the person. It is called once, before the hub is shared.
func (ps *person) load() {
	recents := read[[]Recent](ps.shared, recentsKey, "the launch history cannot be read; starting with none")
	ps.recents = pruneRecents(sane(recents))
	ps.loadProjects()
	ps.loadSettings()
	ps.loadPresets()
}

// sane drops entries without an id, duplicates, and secrets that an older version may have stored.
func sane(recents []Recent) []Recent {
	kept := unique(recents, func(r Recent) string { return r.ID })
	for i := range kept {
		kept[i].Spec, kept[i].Count = kept[i].Spec.Redacted(""), max(kept[i].Count, 1)
	}
	return kept
}

// unique drops entries without an id, and duplicates.
func unique[T any](list []T, id func(T) string) []T {
	seen := map[string]bool{"": true}
	return slices.DeleteFunc(list, func(one T) bool {
		known := seen[id(one)]
		seen[id(one)] = true
		return known
	})
}
