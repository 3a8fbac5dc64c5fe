package store

import (
	bolt "go.etcd.io/bbolt"

	"slipway/backend/session"
)

var (
	// bucketImages holds what the agent itself knows of images: id → Image.
	bucketImages = []byte("images")
	// bucketClaims holds images that are being made, or were made before schema 3: reference → session.ImageOrigin.
	// Their ids are not known.
	bucketClaims = []byte("image-claims")
)

// Image is what the agent itself knows of an image, whatever its labels say.
type Image struct {
	Origin *session.ImageOrigin `json:"origin,omitempty"`
	Owners []string             `json:"owners,omitempty"` // as in session.Image
	Login  bool                 `json:"login,omitempty"`  // as in session.Image
}

// IsZero reports whether nothing is known.
func (i Image) IsZero() bool { return i.Origin == nil && len(i.Owners) == 0 && !i.Login }

// Images returns what is known of images, by their ids.
func (s *Store) Images() (map[string]Image, error) { return all[Image](s, bucketImages) }

// ImageClaims returns the images whose ids are not known, by their references.
func (s *Store) ImageClaims() (map[string]session.ImageOrigin, error) {
	return all[session.ImageOrigin](s, bucketClaims)
}

func all[T any](s *Store, bucket []byte) (map[string]T, error) {
	found := map[string]T{}
	err := s.db.View(func(tx *bolt.Tx) error {
		return tx.Bucket(bucket).ForEach(func(key, data []byte) (err error) {
			found[string(key)], err = decoded[T]("image", key, data)
			return err
		})
	})
	return found, readError(err)
}

// PutImage stores what is known of an image, in place of what was there.
func (t *Tx) PutImage(id string, i Image) error {
	if i.IsZero() {
		return t.tx.Bucket(bucketImages).Delete([]byte(id))
	}
	return put(t.tx.Bucket(bucketImages), []byte(id), i)
}

// PutImageClaim stores that the image of a reference is to have an origin.
func (t *Tx) PutImageClaim(ref string, origin session.ImageOrigin) error {
	return put(t.tx.Bucket(bucketClaims), []byte(ref), origin)
}

// DropImageClaim forgets a claim.
func (t *Tx) DropImageClaim(ref string) error { return t.tx.Bucket(bucketClaims).Delete([]byte(ref)) }

// toSchema3 gives images records of their own. Labels, by which images were told apart before, prove nothing: anybody
// can write them into an image. What the records of sessions say becomes claims, which the agent compares with the
// images.
func toSchema3(tx *bolt.Tx) error {
	for _, name := range [][]byte{bucketImages, bucketClaims} {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	if err := receivedToSchema3(&Tx{tx}); err != nil {
		return err
	}
	instance := string(tx.Bucket(bucketMeta).Get(metaInstance))
	return tx.Bucket(bucketSessions).ForEach(func(id, data []byte) error {
		r, err := decoded[record]("session", id, data)
		if err != nil {
			return err
		}
		names, err := madeOf(tx, r.Session)
		if err != nil {
			return err
		}
		for _, name := range names {
			origin := session.ImageOrigin{Name: name, Owner: r.Session.Owner, Instance: instance, Session: r.Session.ID}
			if err := (&Tx{tx}).PutImageClaim(session.CommitRef(origin.Owner, name), origin); err != nil {
				return err
			}
		}
		return nil
	})
}

// madeOf names the images that were made of a session, as its record and its history say.
func madeOf(tx *bolt.Tx, s session.Session) (names []string, err error) {
	if s.EndImage != nil && s.EndImage.State == session.WorkDone {
		names = append(names, s.EndImage.Name)
	}
	phases, err := (&Tx{tx}).Phases(s.ID)
	for _, p := range phases {
		for _, step := range p.Steps {
			if p.Phase == session.PhaseCommit && step.Step == "commit" && step.Result == session.OutcomeSuccess {
				names = append(names, step.Message)
			}
		}
	}
	return names, err
}

// receivedToSchema3 keeps images of other agents to those who had them brought.
func receivedToSchema3(t *Tx) error {
	const key = "received-images"
	accounts := t.tx.Bucket(bucketAccounts)
	data := accounts.Get([]byte(key))
	if data == nil {
		return nil
	}
	received, err := decoded[map[string][]string]("account", []byte(key), data)
	if err != nil {
		return err
	}
	for id, owners := range received {
		if err := t.PutImage(id, Image{Owners: owners}); err != nil {
			return err
		}
	}
	return accounts.Delete([]byte(key))
}
