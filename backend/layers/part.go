package layers

import (
	"regexp"

	"slipway/backend/session"
)

// digestRule is what names a layer; a name that keeps it is safe as that of a file.
var digestRule = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

const (
	// layersMost bounds the layers of one image; engines themselves stop at 127.
	layersMost = 1000
	// refsMost bounds the names of one image.
	refsMost = 100
)

func validPart(name string) bool { return name == session.ImageConfig || digestRule.MatchString(name) }

// Check says what is wrong with a description of an image.
func Check(parts session.ImageParts) error {
	wrong := func(what string) error {
		return session.NewError(session.CodeImageInvalid, "The image cannot be received: "+what+".",
			"Upgrade the older side.")
	}
	switch {
	case !digestRule.MatchString(parts.ID):
		return wrong("its id is none")
	case len(parts.Layers) == 0 || len(parts.Layers) > layersMost:
		return wrong("it has no layers, or too many")
	case len(parts.Refs) > refsMost:
		return wrong("it has too many names")
	}
	for _, layer := range parts.Layers {
		if !digestRule.MatchString(layer.Digest) || layer.Size < 0 {
			return wrong("one of its layers is not named by its digest")
		}
	}
	for _, ref := range parts.Refs {
		if !session.ValidImage(ref) {
			return wrong("one of its names is none")
		}
	}
	return nil
}
