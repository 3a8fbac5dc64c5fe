package session

import (
	"context"
	"io"

	"slipway/gpu"
)

// ImageTransfers moves images between agents without a registry: the agent with an image describes it and sends what is
// asked for; the other reports what it lacks, keeps what has arrived, and passes it to its engine in the end. Either
// may be disconnected at any moment: what has arrived stays for seven days, also across a restart of the agent.
type ImageTransfers interface {
	ImageArrivals
	// DescribeImage returns the parts of an image; engine_image_not-found.
	//
	//rpc:method name=image.describe effect=read limit=long who=custom
	DescribeImage(ctx context.Context, ref string) (ImageParts, error)
	// SendImage returns parts of an image, from their offsets, as a stream of package layers. engine_image_not-found.
	//
	//rpc:method name=image.send effect=read limit=long who=custom
	SendImage(ctx context.Context, wish ImageWish) (io.ReadCloser, error)
}

// ImageArrivals receives images. What one person uploads belongs to them until it is installed.
type ImageArrivals interface {
	// ExpectImage prepares for an image and returns how much of each part has arrived. It can be repeated. Fails with
	// disk_write_no-space, engine_create_unsupported for another processor architecture, image_update_conflict or
	// request_decode_too-large beyond a person's limits on uploads, and image_update_conflict if one of its names
	// belongs to another image. A person who is no admin gets it under names of their own.
	//
	//rpc:method name=image.expect effect=again limit=long who=custom
	ExpectImage(ctx context.Context, parts ImageParts) (ImageArrival, error)
	// ReceiveImage receives a stream of package layers for an expected image: the caller writes it, and reads how much
	// of each part is stored. A second caller ends the stream of the first. Fails with image_receive_not-found and
	// image_receive_corrupt.
	//
	//rpc:method name=image.receive effect=once class=bulk who=custom
	ReceiveImage(ctx context.Context, id string) (io.ReadWriteCloser, error)
	// InstallImage passes a complete image to the engine and drops its parts. image_update_invalid while some are
	// missing; image_update_conflict as ExpectImage.
	//
	//rpc:method name=image.install effect=again limit=slow who=custom
	InstallImage(ctx context.Context, id string) (Image, error)
	// ForgetImage drops what has arrived of an image.
	//
	//rpc:method name=image.forget effect=again who=custom
	ForgetImage(ctx context.Context, id string) error
}

// ImageParts are the parts of an image: a configuration and layers, each on top of those before it.
type ImageParts struct {
	ID      string       `json:"id"` // as the sender's engine knows it
	Refs    []string     `json:"refs"`
	Arch    string       `json:"arch"`
	OS      string       `json:"os"`
	Layers  []ImageLayer `json:"layers"`            // lowest first
	Replace bool         `json:"replace,omitempty"` // an admin moves names from another image
}

// ImageLayer is one layer. Size is that of the engine and may differ from what is sent; it is 0 if it only removes.
type ImageLayer struct {
	Digest string    `json:"digest"` // "sha256:" and 64 hexadecimal digits, of its uncompressed archive
	Size   gpu.Bytes `json:"size"`
}

// ImageConfig names the part with an image's configuration; all others are named by their digests.
const ImageConfig = "config"

// ImageWish asks for parts of an image. They are sent in the order of the engine.
type ImageWish struct {
	ID    string     `json:"id"`
	Parts []PartMark `json:"parts"`
}

// PartMark is a place in one part, in bytes of its uncompressed content.
type PartMark struct {
	Part   string    `json:"part"`
	Offset gpu.Bytes `json:"offset"`
}

// ImageArrival is how much of the missing parts of an image has arrived. A layer that the engine has is not listed.
type ImageArrival struct {
	ID      string     `json:"id"`
	Missing []PartMark `json:"missing,omitempty"` // in the order of the image; Offset: what is kept of it
	Present int        `json:"present"`           // layers that the engine has or that have arrived
}
