package session

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"slipway/gpu"
)

// Images lists, pulls, makes and removes images. A pull and a commit continue without the caller: each is an
// [ImageWork], which the agent remembers for a while after its end, but not across a restart.
type Images interface {
	//rpc:method name=images effect=read who=custom
	ListImages(ctx context.Context) ([]Image, error)
	// PullImage starts a pull, or joins a running one. engine_pull_not-found, engine_pull_forbidden and so on;
	// image_update_invalid for what is not a name, or names a customized image, which no registry has.
	//
	//rpc:method name=image.pull effect=again who=custom
	PullImage(ctx context.Context, req PullRequest) (ImageWork, error)
	// CommitSession starts to make an image of what a RUNNING interactive session, or an ended one that kept its
	// container, changed in its main kernel, without folders, mounts and /home/work. Fails with image_update_invalid,
	// image_update_conflict for another session or one that is being committed, and image_commit_already-exists if its
	// owner has an image of that name.
	//
	//rpc:method name=image.commit effect=once args=id,commit who=owner audit=req.Name
	CommitSession(ctx context.Context, id ID, req CommitRequest) (ImageWork, error)
	// AwaitImageWork waits [ImageWorkWait] at most for a revision above after, or the end. operation_read_not-found.
	//
	//rpc:method name=image.work effect=read args=work,after? who=custom
	AwaitImageWork(ctx context.Context, id string, after uint64) (ImageWork, error)
	// CancelImageWork asks a work to end and drops what it has made so far. One that has ended stays as it is.
	//
	//rpc:method name=image.cancel effect=again args=work who=custom
	CancelImageWork(ctx context.Context, id string) (ImageWork, error)
	// RemoveImage removes an image with all its names. Fails with engine_image_not-found, and with
	// image_update_conflict if a live session, or any container, uses it.
	//
	//rpc:method name=image.remove effect=once limit=slow who=custom
	RemoveImage(ctx context.Context, ref string) error
	// ImageDisk returns the disk use of images, also of those without a name.
	//
	//rpc:method name=image.disk effect=read limit=slow who=custom
	ImageDisk(ctx context.Context) (ImageDisk, error)
}

// ImageWorkWait is how long AwaitImageWork waits for a change.
const ImageWorkWait = 20 * time.Second

// Image is an image that an agent's engine has.
type Image struct {
	ID        string            `json:"id"`
	Refs      []string          `json:"refs"`
	Digests   []string          `json:"digests,omitempty"` // what registries call it: name@digest
	Size      gpu.Bytes         `json:"size"`
	CreatedAt time.Time         `json:"createdAt"`
	Arch      string            `json:"arch"`
	Labels    map[string]string `json:"labels"`
	Origin    *ImageOrigin      `json:"origin,omitempty"` // nil: it was not made of a session
	UsedBy    []ImageUser       `json:"usedBy"`           // live sessions; only in lists
	// Owners may use it, whatever its names are, and others only if Login is set; empty: the names decide.
	Owners []string `json:"owners,omitempty"`
	Login  bool     `json:"login,omitempty"` // it was pulled, and can be only with a registry login of the agent
}

// ShownTo reports whether a person who is no admin may see and use the image. A name under slipway-custom/ belongs to
// the person in it, any other to everybody; logins is whether the person may use the agent's registry logins.
func (i Image) ShownTo(owner string, logins bool) bool {
	if len(i.Owners) > 0 && (!i.Login || slices.Contains(i.Owners, owner)) {
		return slices.Contains(i.Owners, owner)
	}
	return slices.ContainsFunc(i.Refs, func(ref string) bool {
		if CustomizedRef(ref) {
			return OwnRef(owner, ref)
		}
		return logins || !i.Login
	})
}

// OnlyOf reports whether every name of the image belongs to owner.
func (i Image) OnlyOf(owner string) bool {
	own := len(i.Refs) > 0 && !slices.ContainsFunc(i.Refs, func(ref string) bool { return !OwnRef(owner, ref) })
	return own || len(i.Owners) == 1 && i.Owners[0] == owner && !i.Login
}

// ImageOrigin is what a customized image was made from.
type ImageOrigin struct {
	Name        string `json:"name"` // as its owner named it
	Owner       string `json:"owner"`
	Instance    string `json:"instance"` // of the agent that made it, as in [Machine]
	Session     ID     `json:"session"`
	SessionName string `json:"sessionName"`
	Base        string `json:"base"`             // image of the session, or the base of that if customized
	Series      string `json:"series,omitempty"` // name of the series, if made at the end; else empty
}

// ImageUser is a live session that uses an image.
type ImageUser struct {
	Session ID     `json:"session"`
	Name    string `json:"name"`
	Owner   string `json:"owner,omitempty"`
}

// LabelImageInstance names the agent that made an image, on images without a name, too.
const LabelImageInstance = "slipway.image.instance"

// originLabels are the labels of customized images, each with its field.
var originLabels = map[string]func(*ImageOrigin) *string{
	"slipway.image.name":         func(o *ImageOrigin) *string { return &o.Name },
	"slipway.image.owner":        func(o *ImageOrigin) *string { return &o.Owner },
	LabelImageInstance:           func(o *ImageOrigin) *string { return &o.Instance },
	"slipway.image.session":      func(o *ImageOrigin) *string { return (*string)(&o.Session) },
	"slipway.image.session-name": func(o *ImageOrigin) *string { return &o.SessionName },
	"slipway.image.base":         func(o *ImageOrigin) *string { return &o.Base },
	"slipway.image.series":       func(o *ImageOrigin) *string { return &o.Series },
}

// Labels are the labels of an image with this origin.
func (o ImageOrigin) Labels() map[string]string {
	labels := make(map[string]string, len(originLabels))
	for label, field := range originLabels {
		labels[label] = *field(&o)
	}
	return labels
}

// OriginOf reads the origin of an image from its labels, nil if it has none.
func OriginOf(labels map[string]string) *ImageOrigin {
	var o ImageOrigin
	for label, field := range originLabels {
		*field(&o) = labels[label]
	}
	if o.Name == "" {
		return nil
	}
	return &o
}

const customized = "slipway-custom/"

// EmptyImage has no files. Each engine makes it by itself, for system sessions and trials, and lists it nowhere.
const EmptyImage = "slipway-empty:1"

// IsEmptyImage reports whether ref names [EmptyImage], by its digest too.
func IsEmptyImage(ref string) bool {
	return ref == EmptyImage || strings.HasPrefix(ref, EmptyImage+"@") || strings.HasPrefix(ref, "slipway-empty@")
}

// CustomizedRef reports whether ref names a customized image, existing or not.
func CustomizedRef(ref string) bool { return strings.Contains(ref, customized) }

// OwnRef reports whether ref names a customized image of owner.
func OwnRef(owner, ref string) bool {
	rest, own := strings.CutPrefix(ref, customized+slugOf(owner))
	return own && rest != "" && strings.ContainsAny(rest[:1], ":/@")
}

// BroughtRef is slipway-custom/<person>/<name> for an image that owner uploads as ref; empty if ref is invalid.
func BroughtRef(owner, ref string) string {
	match := imageRule().FindStringSubmatch(ref)
	if match == nil {
		return ""
	}
	name, tag := strings.TrimPrefix(match[1], "docker.io/"), cmp.Or(match[2], "latest")
	if rest, ours := strings.CutPrefix(name, customized); ours {
		if _, inner, deep := strings.Cut(rest, "/"); deep {
			rest = inner // of the one who brought it there
		}
		name = rest
	}
	parts := strings.Split(name, "/")
	for i, part := range parts {
		if !imagePartRule().MatchString(part) { // the host of a registry, with a port
			parts[i] = strings.Trim(notSlug().ReplaceAllString(strings.ToLower(part), "-"), "-")
		}
	}
	brought := customized + slugOf(owner) + "/" + path.Join(parts...) + ":" + tag
	if !ValidImage(brought) {
		return ""
	}
	return brought
}

// CommitRef is the reference of a customized image. Repositories have no capital letters, tags may have them.
func CommitRef(owner, name string) string {
	if strings.HasPrefix(name, "-") {
		name = "_" + name // no tag begins so
	}
	return customized + slugOf(owner) + ":" + name
}

func slugOf(owner string) string {
	slug := strings.Trim(notSlug().ReplaceAllString(strings.ToLower(owner), "-"), "-")
	if slug != owner { // which another owner may be reduced to as well
		sum := sha256.Sum256([]byte(owner))
		slug = strings.TrimLeft(fmt.Sprintf("%s-%x", slug, sum[:4]), "-")
	}
	return slug
}

var imagePartRule = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^` + imagePart + `$`) })

var notSlug = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^a-z0-9]+`) })

// PullRequest asks for an image of a registry.
type PullRequest struct {
	Ref     string `json:"ref"`
	Owner   string `json:"owner"`             // who asks for it
	ByAdmin bool   `json:"byAdmin,omitempty"` // it may use the agent's registry logins; set by the gate
	// Login is the person's own for the registry; nil: none
	Login *RegistryLogin `json:"login,omitempty"`
}

// CommitRequest asks for an image of a session.
type CommitRequest struct {
	Name string `json:"name"` // a valid one of [CommitNames]
}

// ImageWorkKind is what a piece of work on images does.
type ImageWorkKind string

// The kinds of work.
const (
	WorkPull   ImageWorkKind = "pull"
	WorkCommit ImageWorkKind = "commit"
	WorkBuild  ImageWorkKind = "build"
)

// ImageWorkState is the state of a work.
type ImageWorkState string

// The states of work; all but the first are ends.
const (
	WorkRunning   ImageWorkState = "running"
	WorkDone      ImageWorkState = "done"
	WorkFailed    ImageWorkState = "failed"
	WorkCancelled ImageWorkState = "cancelled"
)

// ImageWork is the state of a pull, a commit or a build at one moment.
type ImageWork struct {
	ID        string         `json:"id"`
	Kind      ImageWorkKind  `json:"kind"`
	Ref       string         `json:"ref"` // of the image
	Owner     string         `json:"owner"`
	Session   ID             `json:"session,omitempty"` // that is committed
	State     ImageWorkState `json:"state"`
	Pull      Pull           `json:"pull,omitzero"`   // progress of a pull
	Build     *Build         `json:"build,omitempty"` // progress of a build; nil: it is none, or has not begun
	Size      gpu.Bytes      `json:"size"`            // what a commit copies; 0 while unknown
	Error     *Cause         `json:"error,omitempty"`
	StartedAt time.Time      `json:"startedAt"`
	EndedAt   *time.Time     `json:"endedAt,omitempty"`
	Revision  uint64         `json:"revision"`
}

// ImageDisk is the disk use of images. They share layers, so the sum of their sizes is more than they use together.
type ImageDisk struct {
	Total  gpu.Bytes   `json:"total"` // all layers, each once
	Images []ImageRoom `json:"images"`
}

// ImageRoom is the disk use of one image.
type ImageRoom struct {
	Image
	Alone      gpu.Bytes `json:"alone"`      // freed if only this image is removed
	Containers int       `json:"containers"` // that use it, anybody's
}

// MaxCommitOnEnd is the most images that [Spec.CommitOnEnd] may keep.
const MaxCommitOnEnd = 50

// EndImage is the image that is made of a session as it ends ([Spec.CommitOnEnd], [Moves]). If it, or the home of a
// parked session, could not be kept, for lack of disk space, say, the session keeps its main container, stopped, until
// it is committed ([Images.CommitSession]) or dropped ([Sessions.Terminate], forced).
type EndImage struct {
	State ImageWorkState `json:"state"`
	Name  string         `json:"name"` // of the image, in the manner of [SeriesName]
	Ref   string         `json:"ref"`
	Size  gpu.Bytes      `json:"size"` // of what the session changed; 0 while unknown
	Kept  bool           `json:"kept"`
	Error *Cause         `json:"error,omitempty"` // why there is none
}

// EndsInImage reports whether an image is to be made of a session that is ending: not of one that never ran or is
// forced to end, nor of a batch session that failed, whose image would displace those of successful ones.
func (s Session) EndsInImage() bool {
	if s.Spec.CommitOnEnd == 0 && !s.Parked || s.Forced || s.StartedAt == nil {
		return false
	}
	if s.Spec.Type == Batch {
		switch s.Stopping {
		case ReasonTaskFailed, ReasonOOM, ReasonLost, ReasonPreempted, ReasonStartFailed:
			return false
		}
	}
	return true
}

// KeepsContainer reports whether an ended session still has its main container.
func (s Session) KeepsContainer() bool {
	return s.Status.Terminal() && s.EndImage != nil && s.EndImage.Kept
}

// SeriesName names an image of a session's series by its number. It satisfies [CommitNames] for every session name.
func SeriesName(name string, number int) string {
	slug := strings.ReplaceAll(name, ".", "-")
	ending := fmt.Sprintf("-%d", number)
	return strings.TrimRight(slug[:min(len(slug), CommitNames.Max-len(ending))], "-") + ending
}

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

// The grammar of an image reference, as the OCI distribution project defines it: [host[:port]/]path[:tag][@digest], or
// the id of an image.
const (
	imageHost = `(?:(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])(?:\.(?:[a-zA-Z0-9]|` +
		`[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?`
	imagePart   = `[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*`
	imageDigest = `[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}`
)

// imageRule and imageIDRule are compiled on first use, like [namePart].
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

// PinImage adds a digest to ref, if it has none and is no id: of a registry if known, else the id of the image.
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

func imageName(ref string) string {
	if match := imageRule().FindStringSubmatch(ref); match != nil {
		ref = match[1]
	}
	return strings.TrimPrefix(strings.TrimPrefix(ref, "docker.io/"), "library/")
}

// ImageDigest returns the digest at the end of ref, or "".
func ImageDigest(ref string) string {
	_, digest, _ := strings.Cut(ref, "@")
	return digest
}

// ValidImageID reports whether ref is the id of an image.
func ValidImageID(ref string) bool { return imageIDRule().MatchString(ref) }

// SameImage reports whether two references mean one image, with default parts or without.
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
	case s.Image == "" && s.Type == System:
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
