package session

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
)

// The grammar of an image reference, as the OCI distribution project defines
// it: [host[:port]/]path[:tag][@digest], or the id of an image.
const (
	imageHost = `(?:(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])(?:\.(?:[a-zA-Z0-9]|` +
		`[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?`
	imagePart   = `[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*`
	imageDigest = `[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}`
)

// imageRule and imageIDRule are compiled when they are first used: every start
// of a program in a container links this package and none checks an image there.
var (
	imageRule = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^((?:` + imageHost + `/)?` + imagePart + `(?:/` + imagePart +
			`)*)(?::(\w[\w.-]{0,127}))?(?:@(` + imageDigest + `))?$`)
	})
	imageIDRule = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^sha256:[0-9a-f]{12,64}$`) })
)

const (
	maxImage     = 255
	maxReference = 512 // with tag and digest
)

// ValidImage reports whether ref can name an image.
func ValidImage(ref string) bool {
	if len(ref) > maxReference {
		return false
	}
	if imageIDRule().MatchString(ref) {
		return true
	}
	match := imageRule().FindStringSubmatch(ref)
	return match != nil && len(match[1]) <= maxImage
}

// PinImage names an image by its digest: the one of a registry where that is
// known, else the id that its content has on any machine. A reference that has a
// digest already, or is an id, stays as it is.
func PinImage(ref string, image Image) string {
	if imageIDRule().MatchString(ref) || strings.Contains(ref, "@") {
		return ref
	}
	name := imageName(ref)
	for _, digest := range image.Digests {
		if at := strings.LastIndex(digest, "@"); at > 0 && imageName(digest[:at]) == name {
			return ref + digest[at:]
		}
	}
	if !imageIDRule().MatchString(image.ID) {
		return ref
	}
	return ref + "@" + image.ID
}

// imageName is a reference without its tag and without what it need not say.
func imageName(ref string) string {
	if match := imageRule().FindStringSubmatch(ref); match != nil {
		ref = match[1]
	}
	return strings.TrimPrefix(strings.TrimPrefix(ref, "docker.io/"), "library/")
}

// ImageDigest returns the digest that a reference ends with, "" without one.
func ImageDigest(ref string) string {
	_, digest, _ := strings.Cut(ref, "@")
	return digest
}

// ValidImageID reports whether ref is the id of an image.
func ValidImageID(ref string) bool { return imageIDRule().MatchString(ref) }

// SameImage reports whether two references mean one image, though one of them
// leaves out what goes without saying.
func SameImage(a, b string) bool {
	tag := func(ref string) string {
		if match := imageRule().FindStringSubmatch(ref); match != nil && match[2] != "" {
			return match[2]
		}
		return "latest"
	}
	return imageName(a) == imageName(b) && tag(a) == tag(b)
}

func (s Spec) validateImage(f *findings) {
	switch {
	case s.Image == "":
		f.say("image", KindRequired, Say("imageRequired"))
	case ValidImage(s.Image):
	case strings.ContainsFunc(s.Image, unicode.IsSpace):
		f.say("image", KindInvalid, Say("imageSpaces"))
	case strings.ToLower(s.Image) != s.Image && ValidImage(strings.ToLower(s.Image)):
		f.say("image", KindInvalid, Say("imageUpper"))
	default:
		f.say("image", KindInvalid, Say("imageForm"))
	}
}
