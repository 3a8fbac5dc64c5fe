package session

import (
	"context"
	"io"

	"slipway/gpu"
)

// ImageTransfers moves images between agents where no registry is reached: the agent that has an image describes it and
// sends what is asked for, the one that wants it says what it lacks, keeps what has arrived, and gives it to its engine
// in the end. Whoever carries it between them may be cut off at any moment: what was kept stays, for seven days, also
// over a restart of the agent.
type ImageTransfers interface {
	ImageArrivals
	// DescribeImage says what an image is made of; engine_image_not-found.
	//
	//rpc:method name=image.describe effect=read limit=long who=custom
	DescribeImage(ctx context.Context, ref string) (ImageParts, error)
	// SendImage returns the parts wished for, each from its offset, as a stream of package layers. The caller closes
	// it. engine_image_not-found.
	//
	//rpc:method name=image.send effect=read limit=long who=custom
	SendImage(ctx context.Context, wish ImageWish) (io.ReadCloser, error)
}

// ImageArrivals is the side of [ImageTransfers] that gets an image. What one person brings is theirs until it is
// installed.
type ImageArrivals interface {
	// ExpectImage makes ready for an image and says how far each of its parts is. Asked again it says so again. Fails
	// with disk_write_no-space, engine_create_unsupported for an image of another kind of processor,
	// image_update_conflict or request_decode_too-large beyond what one person may have on the way, and
	// image_update_conflict where one of its names is another image's. A person who is no admin gets it under names of
	// their own.
	//
	//rpc:method name=image.expect effect=again limit=long who=custom
	ExpectImage(ctx context.Context, parts ImageParts) (ImageArrival, error)
	// ReceiveImage takes a stream of package layers for an image that is
	// expected: the caller writes it, and reads how far each part is kept for
	// good. A second caller ends the stream of the first.
	// Fails with image_receive_not-found and image_receive_corrupt.
	//
	//rpc:method name=image.receive effect=once class=bulk who=custom
	ReceiveImage(ctx context.Context, id string) (io.ReadWriteCloser, error)
	// InstallImage gives an image whose parts are all there to the engine and forgets them. image_update_invalid while
	// some are not; image_update_conflict as ExpectImage.
	//
	//rpc:method name=image.install effect=again limit=slow who=custom
	InstallImage(ctx context.Context, id string) (Image, error)
	// ForgetImage drops what has arrived of an image.
	//
	//rpc:method name=image.forget effect=again who=custom
	ForgetImage(ctx context.Context, id string) error
}

// ImageParts says what an image is made of: a configuration and layers, of which every one is laid over those before
// it.
type ImageParts struct {
	ID     string       `json:"id"` // as the sender's engine knows it
	Refs   []string     `json:"refs"`
	Arch   string       `json:"arch"`
	OS     string       `json:"os"`
	Layers []ImageLayer `json:"layers"` // lowest first
	// Replace lets an admin move names that are another image's there.
	Replace bool `json:"replace,omitempty"`
}

// ImageLayer is one layer. Size is what the engine says of it and may differ from what is sent; a layer that only
// removes has none.
type ImageLayer struct {
	Digest string    `json:"digest"` // "sha256:" and 64 hexadecimal digits, of its uncompressed archive
	Size   gpu.Bytes `json:"size"`
}

// ImageConfig is the name of the part that holds an image's configuration; all others are named by their digests.
const ImageConfig = "config"

// ImageWish asks for parts of an image. They are sent in the order in which the engine has them.
type ImageWish struct {
	ID    string     `json:"id"`
	Parts []PartMark `json:"parts"`
}

// PartMark is a place in one part, in bytes of its uncompressed content.
type PartMark struct {
	Part   string    `json:"part"`
	Offset gpu.Bytes `json:"offset"`
}

// ImageArrival says how far the parts of an image are that are not there yet. A layer that the engine has is not named.
type ImageArrival struct {
	ID      string     `json:"id"`
	Missing []PartMark `json:"missing,omitempty"` // in the order of the image; Offset: what is kept of it
	// Present is how many layers need not be sent: the engine has them or they have arrived.
	Present int `json:"present"`
}
