package session

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"slipway/gpu"
)

// Images lists, fetches, makes and removes the images of an agent's engine. Fetching one and making one of a session
// take a while and go on when whoever asked has left: each is an [ImageWork], which the agent remembers for a while
// after its end, and not over a restart.
type Images interface {
	//rpc:method name=images effect=read who=custom
	ListImages(ctx context.Context) ([]Image, error)
	// PullImage begins to fetch an image, or joins the fetching that goes on. The codes of its failures are those of
	// the engine: engine_pull_not-found, engine_pull_forbidden and so on. image_update_invalid for what is no name, or
	// names a customized image, which no registry has.
	//
	//rpc:method name=image.pull effect=again who=custom
	PullImage(ctx context.Context, req PullRequest) (ImageWork, error)
	// CommitSession begins to make an image of what a RUNNING interactive
	// session, or an ended one that kept its container, changed in its main
	// kernel; folders, mounts and /home/work are not part of it. Fails with image_update_invalid,
	// image_update_conflict where
	// the session is not one of that kind or is being committed already, and
	// image_commit_already-exists where its owner has an image of that name.
	//
	//rpc:method name=image.commit effect=once args=id,commit who=owner audit=req.Name
	CommitSession(ctx context.Context, id ID, req CommitRequest) (ImageWork, error)
	// AwaitImageWork returns a piece of work as soon as its revision is above after, at once where it has ended, and
	// else as it is after [ImageWorkWait]. operation_read_not-found.
	//
	//rpc:method name=image.work effect=read args=work,after? who=custom
	AwaitImageWork(ctx context.Context, id string, after uint64) (ImageWork, error)
	// CancelImageWork asks a piece of work to end. What it has made so far is dropped. One that has ended stays as it
	// is.
	//
	//rpc:method name=image.cancel effect=again args=work who=custom
	CancelImageWork(ctx context.Context, id string) (ImageWork, error)
	// RemoveImage removes an image under all its names. Fails with engine_image_not-found, and with
	// image_update_conflict where a live session, or any container, uses it.
	//
	//rpc:method name=image.remove effect=once limit=slow who=custom
	RemoveImage(ctx context.Context, ref string) error
	// ImageDisk says what images take on the disk, those without a name included.
	//
	//rpc:method name=image.disk effect=read limit=slow who=custom
	ImageDisk(ctx context.Context) (ImageDisk, error)
}

// ImageWorkWait is how long AwaitImageWork waits for news.
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
	// Owners are the only people who may use it, whatever it is called; empty: its names decide.
	Owners []string `json:"owners,omitempty"`
	// Login reports that it was pulled with a registry login of the agent and cannot be pulled without one.
	Login bool `json:"login,omitempty"`
}

// ShownTo reports whether a person who is no admin may see and use the image. A name under slipway-custom/ is of the
// person in it, any other is everybody's; logins says whether the person may use the agent's registry logins.
func (i Image) ShownTo(owner string, logins bool) bool {
	if len(i.Owners) > 0 {
		return slices.Contains(i.Owners, owner)
	}
	return slices.ContainsFunc(i.Refs, func(ref string) bool {
		if CustomizedRef(ref) {
			return OwnRef(owner, ref)
		}
		return logins || !i.Login
	})
}

// OnlyOf reports whether every name of the image is a person's own.
func (i Image) OnlyOf(owner string) bool {
	own := len(i.Refs) > 0 && !slices.ContainsFunc(i.Refs, func(ref string) bool { return !OwnRef(owner, ref) })
	return own || len(i.Owners) == 1 && i.Owners[0] == owner
}

// ImageOrigin says what a customized image was made of.
type ImageOrigin struct {
	Name        string `json:"name"` // as its owner named it
	Owner       string `json:"owner"`
	Instance    string `json:"instance"` // of the agent that made it, as in [Machine]
	Session     ID     `json:"session"`
	SessionName string `json:"sessionName"`
	// image that the session began with; that one's base where it was customized itself
	Base string `json:"base"`
	// name of the series that it was kept in when its session ended; empty: a person asked for it
	Series string `json:"series,omitempty"`
}

// ImageUser is a live session that uses an image.
type ImageUser struct {
	Session ID     `json:"session"`
	Name    string `json:"name"`
	Owner   string `json:"owner,omitempty"`
}

// The labels of customized images.
const (
	labelOriginName        = "slipway.image.name"
	labelOriginOwner       = "slipway.image.owner"
	labelOriginInstance    = "slipway.image.instance"
	labelOriginSession     = "slipway.image.session"
	labelOriginSessionName = "slipway.image.session-name"
	labelOriginBase        = "slipway.image.base"
	labelOriginSeries      = "slipway.image.series"
)

// LabelImageInstance names the agent that made an image, on images that have no name yet as well.
const LabelImageInstance = labelOriginInstance

// Labels are those by which an image tells of its origin.
func (o ImageOrigin) Labels() map[string]string {
	return map[string]string{
		labelOriginName: o.Name, labelOriginOwner: o.Owner, labelOriginInstance: o.Instance,
		labelOriginSession:     string(o.Session),
		labelOriginSessionName: o.SessionName, labelOriginBase: o.Base, labelOriginSeries: o.Series,
	}
}

// OriginOf reads the origin of an image from its labels, nil where it has none.
func OriginOf(labels map[string]string) *ImageOrigin {
	if labels[labelOriginName] == "" {
		return nil
	}
	return &ImageOrigin{
		Name: labels[labelOriginName], Owner: labels[labelOriginOwner], Instance: labels[labelOriginInstance],
		Session:     ID(labels[labelOriginSession]),
		SessionName: labels[labelOriginSessionName], Base: labels[labelOriginBase], Series: labels[labelOriginSeries],
	}
}

// customized begins the names of repositories of customized images.
const customized = "slipway-custom/"

// CustomizedRef reports whether a reference names a customized image, be it there or not.
func CustomizedRef(ref string) bool { return strings.Contains(ref, customized) }

// OwnRef reports whether a reference names a customized image of a person.
func OwnRef(owner, ref string) bool {
	rest, own := strings.CutPrefix(ref, customized+slugOf(owner))
	return own && rest != "" && strings.ContainsAny(rest[:1], ":/@")
}

// BroughtRef is the name under a person's own prefix for an image that they bring to an agent under another name:
// slipway-custom/<person>/<name>. It is empty where no name comes of it.
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

// CommitRef is the reference of a customized image. Names of repositories have no capital letters, tags may have them.
func CommitRef(owner, name string) string {
	if strings.HasPrefix(name, "-") {
		name = "_" + name // no tag begins so
	}
	return customized + slugOf(owner) + ":" + name
}

// slugOf is a person as a part of the name of a repository.
func slugOf(owner string) string {
	slug := strings.Trim(notSlug().ReplaceAllString(strings.ToLower(owner), "-"), "-")
	if slug != owner { // which another owner may be reduced to as well
		sum := sha256.Sum256([]byte(owner))
		slug = strings.TrimLeft(fmt.Sprintf("%s-%x", slug, sum[:4]), "-")
	}
	return slug
}

// imagePartRule matches one component of the name of a repository.
var imagePartRule = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^` + imagePart + `$`) })

// notSlug is compiled when it is first used, as imageRule is.
var notSlug = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^a-z0-9]+`) })

// PullRequest asks for an image of a registry.
type PullRequest struct {
	Ref   string `json:"ref"`
	Owner string `json:"owner"` // whose wish it is
	// ByAdmin lets the pull use the agent's registry logins. The gate says so of those whom it lets in.
	ByAdmin bool `json:"byAdmin,omitempty"`
}

// CommitRequest asks for an image of a session.
type CommitRequest struct {
	Name string `json:"name"` // under the rule of [CommitNames]
}

// ImageWorkKind is what a piece of work on images does.
type ImageWorkKind string

// The kinds of work.
const (
	WorkPull   ImageWorkKind = "pull"
	WorkCommit ImageWorkKind = "commit"
)

// ImageWorkState is where a piece of work stands.
type ImageWorkState string

// The states of work; all but the first are ends.
const (
	WorkRunning   ImageWorkState = "running"
	WorkDone      ImageWorkState = "done"
	WorkFailed    ImageWorkState = "failed"
	WorkCancelled ImageWorkState = "cancelled"
)

// ImageWork is a piece of work on an image, as it is at one moment.
type ImageWork struct {
	ID        string         `json:"id"`
	Kind      ImageWorkKind  `json:"kind"`
	Ref       string         `json:"ref"` // of the image
	Owner     string         `json:"owner"`
	Session   ID             `json:"session,omitempty"` // that is committed
	State     ImageWorkState `json:"state"`
	Pull      Pull           `json:"pull,omitzero"` // progress of a pull
	Size      gpu.Bytes      `json:"size"`          // what a commit copies; 0 while unknown
	Error     *Cause         `json:"error,omitempty"`
	StartedAt time.Time      `json:"startedAt"`
	EndedAt   *time.Time     `json:"endedAt,omitempty"`
	Revision  uint64         `json:"revision"`
}

// ImageDisk is what images take on the disk. Images share layers, so that the sum of their sizes is more than what they
// take together.
type ImageDisk struct {
	Total  gpu.Bytes   `json:"total"` // all layers, each once
	Images []ImageRoom `json:"images"`
}

// ImageRoom is what one image takes.
type ImageRoom struct {
	Image
	Alone      gpu.Bytes `json:"alone"`      // is free when this image goes and no other
	Containers int       `json:"containers"` // that use it, anybody's
}

// MaxCommitOnEnd is the most images that [Spec.CommitOnEnd] may keep.
const MaxCommitOnEnd = 50

// EndImage is the image that is made of a session as it ends, as [Spec.CommitOnEnd] asks for. A session that ended
// without one for want of room, say, keeps its main container, stopped, until it is made an image after all
// ([Images.CommitSession]) or dropped ([Sessions.Terminate], forced).
type EndImage struct {
	State ImageWorkState `json:"state"`
	Name  string         `json:"name"` // of the image, in the manner of [SeriesName]
	Ref   string         `json:"ref"`
	Size  gpu.Bytes      `json:"size"` // of what the session changed; 0 while unknown
	Kept  bool           `json:"kept"`
	Error *Cause         `json:"error,omitempty"` // why there is none
}

// EndsInImage reports whether an image is to be made of a session whose end is under way. Nothing is made of one that
// never ran or that is forced to end, nor of a batch session that failed: what it left behind would push aside the
// images of those that succeeded.
func (s Session) EndsInImage() bool {
	if s.Spec.CommitOnEnd == 0 || s.Forced || s.StartedAt == nil {
		return false
	}
	if s.Spec.Type == Batch {
		switch s.Stopping {
		case ReasonTaskFailed, ReasonOOM, ReasonLost, ReasonStartFailed:
			return false
		}
	}
	return true
}

// KeepsContainer reports whether an ended session still has its main container.
func (s Session) KeepsContainer() bool {
	return s.Status.Terminal() && s.EndImage != nil && s.EndImage.Kept
}

// SeriesName names the image of a number in the series of a session's name. It keeps the rule of [CommitNames],
// whatever the name of the session.
func SeriesName(name string, number int) string {
	slug := strings.Map(func(r rune) rune {
		if r == '.' {
			return '-'
		}
		return r
	}, name)
	ending := fmt.Sprintf("-%d", number)
	return strings.TrimRight(slug[:min(len(slug), CommitNames.Max-len(ending))], "-") + ending
}

// The grammar of an image reference, as the OCI distribution project defines it: [host[:port]/]path[:tag][@digest], or
// the id of an image.
const (
	imageHost = `(?:(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])(?:\.(?:[a-zA-Z0-9]|` +
		`[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?`
	imagePart   = `[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*`
	imageDigest = `[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}`
)

// imageRule and imageIDRule are compiled when they are first used: every start of a program in a container links this
// package and none checks an image there.
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

// PinImage names an image by its digest: the one of a registry where that is known, else the id that its content has on
// any machine. A reference that has a digest already, or is an id, stays as it is.
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

// SameImage reports whether two references mean one image, though one of them leaves out what goes without saying.
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
