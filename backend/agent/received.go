package agent

import (
	"maps"
	"slices"
	"sync"

	"slipway/backend/session"
	"slipway/backend/store"
)

const keyReceived = "received-images"

// received are those who had customized images of other agents brought here, by
// the images' ids, as the store has them.
type received struct {
	mu    sync.Mutex // guards list
	list  map[string][]string
	write sync.Mutex // held while one is changed and stored
}

func openReceived(books *store.Store) (*received, error) {
	r := &received{list: map[string][]string{}}
	_, err := books.Account(keyReceived, &r.list)
	return r, err
}

// tell says of an image whose it is.
func (r *received) tell(image session.Image) session.Image {
	r.mu.Lock()
	defer r.mu.Unlock()
	image.Received = slices.Clone(r.list[image.ID])
	return image
}

// add stores further owners of an image.
func (r *received) add(a *Agent, id string, owners []string) error {
	return r.change(a, func(list map[string][]string) {
		all := slices.Concat(list[id], owners)
		slices.Sort(all)
		list[id] = slices.Compact(all)
	})
}

// drop forgets an image that is gone.
func (r *received) drop(a *Agent, id string) error {
	r.mu.Lock()
	_, known := r.list[id]
	r.mu.Unlock()
	if !known {
		return nil
	}
	return r.change(a, func(list map[string][]string) { delete(list, id) })
}

func (r *received) change(a *Agent, with func(list map[string][]string)) error {
	r.write.Lock()
	defer r.write.Unlock()
	r.mu.Lock()
	list := maps.Clone(r.list)
	r.mu.Unlock()
	with(list)
	if err := a.update(func(tx *store.Tx) error { return tx.PutAccount(keyReceived, list) }); err != nil {
		return err
	}
	r.mu.Lock()
	r.list = list
	r.mu.Unlock()
	return nil
}
