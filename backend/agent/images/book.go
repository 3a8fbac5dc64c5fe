package images

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"slipway/backend/agent/records"
	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/backend/store"
)

// book is what the agent itself recorded of images. Labels are not trusted: whoever builds an image can set them.
type book struct {
	records *records.Records
	engine  engine.ImageStore

	list   atomic.Pointer[map[string]store.Image] // by id; replaced, never changed
	write  sync.Mutex                             // held while the book is changed and stored
	claims map[string]session.ImageOrigin         // by reference, to be compared with the images; guarded by write
}

func openBook(records *records.Records, images engine.ImageStore) (*book, error) {
	list, err := records.Images()
	if err != nil {
		return nil, err
	}
	b := &book{records: records, engine: images}
	b.list.Store(&list)
	b.claims, err = records.ImageClaims()
	return b, err
}

func (b *book) tell(image session.Image) session.Image {
	known := (*b.list.Load())[image.ID]
	image.Origin, image.Owners, image.Login = known.Origin, slices.Clone(known.Owners), known.Login
	return image
}

func (b *book) change(id string, with func(*store.Image)) error {
	b.write.Lock()
	defer b.write.Unlock()
	return b.put(id, with, func(*store.Tx) error { return nil })
}

// put stores what is recorded of an image, and also what also stores. The caller holds write.
func (b *book) put(id string, with func(*store.Image), also func(*store.Tx) error) error {
	list := maps.Clone(*b.list.Load())
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
	b.list.Store(&list)
	return nil
}

func (b *book) drop(id string) error {
	_, known := (*b.list.Load())[id]
	if !known {
		return nil
	}
	return b.change(id, func(i *store.Image) { *i = store.Image{} })
}

// made records the origin of an image that was claimed. If that cannot be stored, settle does it later.
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

// settle records images that an earlier run claimed: only agents give such names, and the image must name its session.
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
