package images

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"slipway/backend/agent/records"
	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/backend/store"
)

// book is what the agent itself has written down of images. Labels are not believed: whoever builds an image writes
// what they like into them.
type book struct {
	records *records.Records
	engine  engine.ImageStore

	mu     sync.Mutex // guards list
	list   map[string]store.Image
	write  sync.Mutex                     // held while the book is changed and stored
	claims map[string]session.ImageOrigin // by reference, to be compared with the images; guarded by write
}

func openBook(records *records.Records, images engine.ImageStore) (*book, error) {
	list, err := records.Images()
	if err != nil {
		return nil, err
	}
	claims, err := records.ImageClaims()
	return &book{records: records, engine: images, list: list, claims: claims}, err
}

// tell says of an image what is known of it.
func (b *book) tell(image session.Image) session.Image {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.list[image.ID]
	image.Origin, image.Owners, image.Login = known.Origin, slices.Clone(known.Owners), known.Login
	return image
}

// change writes down something else of an image.
func (b *book) change(id string, with func(*store.Image)) error {
	b.write.Lock()
	defer b.write.Unlock()
	return b.put(id, with, func(*store.Tx) error { return nil })
}

// put stores what is known of an image, and also with it; it needs write.
func (b *book) put(id string, with func(*store.Image), also func(*store.Tx) error) error {
	b.mu.Lock()
	list := maps.Clone(b.list)
	b.mu.Unlock()
	image := list[id]
	image.Owners = slices.Clone(image.Owners)
	with(&image)
	err := b.records.Update(func(tx *store.Tx) error {
		return errors.Join(tx.PutImage(id, image), also(tx))
	})
	if err != nil {
		return err
	}
	list[id] = image
	if image.IsZero() {
		delete(list, id)
	}
	b.mu.Lock()
	b.list = list
	b.mu.Unlock()
	return nil
}

// drop forgets an image that is gone.
func (b *book) drop(id string) error {
	b.mu.Lock()
	_, known := b.list[id]
	b.mu.Unlock()
	if !known {
		return nil
	}
	return b.change(id, func(i *store.Image) { *i = store.Image{} })
}

// made writes down what an image that was claimed was made of. A claim that cannot be stored so is settled later.
func (b *book) made(image session.Image, ref string, origin session.ImageOrigin) error {
	b.write.Lock()
	defer b.write.Unlock()
	err := b.put(image.ID, func(i *store.Image) { i.Origin = &origin },
		func(tx *store.Tx) error { return tx.DropImageClaim(ref) })
	if err != nil {
		b.claims[ref] = origin
	}
	return err
}

// settle finds the images that an earlier run was making, or that records of sessions tell of: the name is one that
// only the agent gives, and the image must say that it was made of that session.
func (b *book) settle(ctx context.Context) error {
	b.write.Lock()
	defer b.write.Unlock()
	for ref, claim := range b.claims {
		image, err := b.engine.Image(ctx, ref)
		switch {
		case session.CodeOf(err) == session.CodeNoImage:
			err = b.records.Update(func(tx *store.Tx) error { return tx.DropImageClaim(ref) })
		case err == nil:
			err = b.put(image.ID, func(known *store.Image) {
				told := session.OriginOf(image.Labels)
				if told != nil && told.Owner == claim.Owner && told.Instance == claim.Instance &&
					told.Session == claim.Session && told.Name == claim.Name {
					known.Origin = told
				}
			}, func(tx *store.Tx) error { return tx.DropImageClaim(ref) })
		}
		if err != nil {
			return err
		}
		delete(b.claims, ref)
	}
	return nil
}
