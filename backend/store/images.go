package store

import (
	"slipway/backend/session"
)

var (
	bucketImages = []byte("images") // id → Image
	// bucketClaims holds images that are being made, or were made before schema 3, whose ids are unknown:
	// reference → session.ImageOrigin.
	bucketClaims = []byte("image-claims")
)

// Image is what the agent itself knows about an image. Labels of images prove nothing.
type Image struct {
	Origin *session.ImageOrigin `json:"origin,omitempty"`
	Owners []string             `json:"owners,omitempty"` // as in session.Image
	Login  bool                 `json:"login,omitempty"`  // as in session.Image
}

// IsZero reports whether nothing is known.
func (i Image) IsZero() bool { return i.Origin == nil && len(i.Owners) == 0 && !i.Login }

// Images returns what is known about images, by their ids.
func (s *Store) Images() (map[string]Image, error) { return all[Image](s, bucketImages) }

// ImageClaims returns the images whose ids are unknown, by their references.
func (s *Store) ImageClaims() (map[string]session.ImageOrigin, error) {
	return all[session.ImageOrigin](s, bucketClaims)
}

func all[T any](s *Store, bucket []byte) (map[string]T, error) {
	return view(s.db, func(t *Tx) (map[string]T, error) {
		found := map[string]T{}
		for key, data := range entries(t.tx.Bucket(bucket), nil) {
			one, err := decoded[T]("image", key, data)
			if err != nil {
				return found, err
			}
			found[string(key)] = one
		}
		return found, nil
	})
}

// PutImage stores what is known about an image.
func (t *Tx) PutImage(id string, i Image) error {
	if i.IsZero() {
		return t.tx.Bucket(bucketImages).Delete([]byte(id))
	}
	return put(t.tx.Bucket(bucketImages), []byte(id), i)
}

// PutImageClaim stores the origin that the image of a reference is to get.
func (t *Tx) PutImageClaim(ref string, origin session.ImageOrigin) error {
	return put(t.tx.Bucket(bucketClaims), []byte(ref), origin)
}

// DropImageClaim removes a claim.
func (t *Tx) DropImageClaim(ref string) error { return t.tx.Bucket(bucketClaims).Delete([]byte(ref)) }
