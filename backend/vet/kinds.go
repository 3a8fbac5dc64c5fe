package vet

import (
	"encoding/pem"
	"net/url"
	"path"
	"reflect"
	"strconv"
	"strings"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// Bounds of what one answer may hold.
const (
	mostText     = 64 << 10 // bytes of a message
	mostTitle    = 512
	mostPath     = 4096
	MostSessions = 50_000
	MostRows     = 1_000_000 // samples and rows of accounts
	mostDevices  = 1024
	mostCPUs     = 1 << 16
	mostWarnings = 256
	mostOfSlurm  = 1000
	mostLayers   = 1000
	mostSize     = 1 << 60 // bytes: sums of a few stay within 64 bits
	mostCount    = 1 << 31
	mostCounter  = 1 << 62
)

// made reports whether a text has 1 to most characters, all of them letters and digits of ASCII or among more.
func made(text string, most int, more string) bool {
	if text == "" || len(text) > most {
		return false
	}
	for i := range len(text) {
		c := text[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte(more, c) < 0 {
			return false
		}
	}
	return true
}

// validID is [session.ValidID] without its regular expression.
func validID(text string) bool {
	return len(text) == 12 && made(text, 12, "") && strings.ToLower(text) == text
}

func validName(text string) bool {
	rule := session.SessionNames
	return len(text) >= rule.Min && made(text, rule.Max, "_.-") && strings.IndexByte(".-", text[0]) < 0 &&
		strings.IndexByte(".-", text[len(text)-1]) < 0
}

func isDigest(text string) bool {
	rest, ok := strings.CutPrefix(text, "sha256:")
	return ok && isChecksum(rest)
}

func isChecksum(text string) bool {
	return len(text) == 64 && strings.Trim(text, "0123456789abcdef") == ""
}

// The kinds of texts.
var (
	id       = Text("the id of a session", validID)
	folderID = Text("the id of a folder", validID)
	name     = Text("the name of a session", validName)
	idOrName = Text("the id or name of a session", func(text string) bool {
		return validID(text) || validName(text)
	})

	// Owner is the name of an account of an operating system, of any alphabet.
	Owner = Text("the name of an owner", func(text string) bool {
		return text != "" && still(text, 128) && !strings.ContainsAny(text, "/\n")
	})
	// word is what programs decide by, and may be new in a newer agent.
	word = Text("a word", func(text string) bool { return made(text, 64, "._-") && text[0] != '-' })
	// Mark names something for programs: an instance, a terminal, a version of a file.
	Mark = Text("a name for programs", func(text string) bool {
		return made(text, 200, "._:+/=-") && text[0] != '-'
	})
	code = Text("a code", func(text string) bool {
		return made(text, 128, "_.-") && text[0] >= 'a' && text[0] <= 'z' && strings.ToLower(text) == text
	})
	uuid = Text("the id of a device", func(text string) bool {
		return made(text, 128, "._:/+-") && text[0] != '-'
	})
	Checksum = Text("a checksum", isChecksum) // SHA-256 in hexadecimal
	digest   = Text("a digest", isDigest)
	// reference can name an image. The grammar is checked where one is chosen.
	reference = Text("the name of an image", func(text string) bool {
		return made(text, 512, "._:/@+-[]") && strings.IndexByte("-./@:+", text[0]) < 0 && !upward(text)
	})
	imageID = Text("the id of an image", session.ValidImageID)
	host    = Text("the name of a host", func(text string) bool {
		return made(text, 253, ".-") && strings.IndexByte(".-", text[0]) < 0
	})
	kernel = Text("the name of a kernel", func(text string) bool {
		number, sub := strings.CutPrefix(text, "sub")
		return text == session.MainKernel || sub && len(number) <= 4 && made(number, 4, "") && strings.Trim(number,
			"0123456789") == ""
	})
	app = Text("the id of an app", func(text string) bool {
		return made(text, 63, "-") && strings.ToLower(text) == text && text[0] != '-'
	})
	tag = Text("a tag", func(text string) bool {
		clean, err := session.CleanTags([]string{text})
		return err == nil && clean[0] == text
	})
	label  = Text("a label", func(text string) bool { return session.ValidateLabel(text) == nil })
	folder = Text("the name of a folder", func(text string) bool {
		return text != "" && session.FolderNames.Check(text) == nil
	})
	// folderRef names a folder in a spec.
	folderRef = Text("a folder", func(text string) bool {
		return validID(text) || session.FolderNames.Check(text) == nil
	})
	subPath = Text("a path in a folder", func(text string) bool {
		return session.CheckSubPath(text) == "" && still(text, mostPath)
	})
	variable = Text("the name of a variable", func(text string) bool {
		return made(text, 128<<10, "_") && (text[0] < '0' || text[0] > '9')
	})

	// absolute is a path of a machine of whatever system that a person may be shown.
	absolute = Text("an absolute path", func(text string) bool {
		drive := len(text) > 2 && made(text[:1], 1, "") && text[1] == ':' && (text[2] == '\\' || text[2] == '/')
		return (drive || strings.HasPrefix(text, "/")) && still(text, mostPath)
	})
	// target is where something appears in a session.
	target = Text("a path in a session", func(text string) bool {
		return strings.HasPrefix(text, "/") && path.Clean(text) == text && still(text, mostPath) &&
			!strings.ContainsAny(text, `:\`)
	})
	// apiBase is the base of the API of services.
	apiBase = Text("the address of an API", func(text string) bool {
		at, err := url.Parse(text)
		return err == nil && (at.Scheme == "http" || at.Scheme == "https") && at.Path == "/v1" && at.User == nil &&
			at.RawQuery == "" && at.Fragment == "" && len(at.Hostname()) > 0 && plain(text, 300) &&
			!strings.ContainsAny(text, " \\\"'$<>`")
	})
	// certificate is one in PEM as encoding/pem writes it, with nothing beside it.
	certificate = Text("a certificate in PEM", func(text string) bool {
		block, _ := pem.Decode([]byte(text))
		return len(text) <= 16<<10 && block != nil && block.Type == "CERTIFICATE" && len(block.Headers) == 0 &&
			string(pem.EncodeToMemory(block)) == text
	})
	// address is where a web page of an app begins.
	address = Text("the path of an address", func(text string) bool {
		return strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "//") && len(text) <= 2048 &&
			plain(text, 2048) && !strings.ContainsAny(text, " \\\"<>`")
	})
)

func upward(text string) bool {
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '/' || r == '\\' }) {
		if part == ".." {
			return true
		}
	}
	return false
}

// The kinds of numbers.
var (
	port    = Whole(0, 65535)
	count   = Whole(0, mostCount)
	cpu     = Whole(0, mostCPUs)
	Offset  = Whole(0, mostCounter) // a place in a stream of bytes, or another counter
	size    = Whole(0, mostSize)
	part    = Whole(0, 1_000_000) // permyriad as drivers report it
	exit    = Whole(-mostCount, 2*mostCount)
	percent = Number(0, 100)
	amount  = Number(-1, 1e9)
)

// common are the rules of types that are the same wherever they stand.
var common = Tables{
	Types: map[reflect.Type]Rule{
		reflect.TypeFor[time.Time]():        Moment,
		reflect.TypeFor[session.ID]():       id,
		reflect.TypeFor[session.FolderID](): folderID,
		reflect.TypeFor[session.Code]():     code,
		reflect.TypeFor[session.Kind]():     Maybe(word),
		reflect.TypeFor[session.Duration](): Whole(0, int64(520*7*24*time.Hour)),
		reflect.TypeFor[session.Phrase]():   Each(phrase),
		reflect.TypeFor[session.Type](): OneOf("", session.Interactive, session.Batch, session.System,
			session.Inference),
		reflect.TypeFor[session.ServiceState](): OneOf(session.ServiceDeploying, session.ServiceReady,
			session.ServiceDegraded, session.ServiceUnreachable, session.ServiceAsleep, session.ServiceUpdating,
			session.ServiceStopping, session.ServiceStopped, session.ServiceFailed),
		reflect.TypeFor[session.ReplicaState](): OneOf(session.ReplicaWaiting, session.ReplicaWarming,
			session.ReplicaHealthy, session.ReplicaUnhealthy, session.ReplicaDraining, session.ReplicaEnded),
		reflect.TypeFor[session.AddressFrom](): OneOf(session.FromMachine, session.FromNetwork),
		reflect.TypeFor[session.RuleDoes](): OneOf(session.RuleRests, session.RuleMissing, session.RuleWithin,
			session.RuleAbove, session.RuleBelow, session.RuleHeld, session.RuleMost, session.RuleFewest),
		reflect.TypeFor[session.Status](): OneOf(session.Pending, session.Scheduled, session.Preparing, session.Pulling,
			session.Prepared, session.Creating,
			session.Running, session.Terminating, session.Terminated, session.Cancelled, session.Failed),
		reflect.TypeFor[session.Result](): OneOf(session.ResultUndefined, session.ResultSuccess, session.ResultFailure),
		reflect.TypeFor[session.Outcome](): OneOf(session.OutcomeRunning, session.OutcomeSuccess,
			session.OutcomeFailure, session.OutcomeStale,
			session.OutcomeNeedRetry, session.OutcomeExpired, session.OutcomeGiveUp, session.OutcomeSkipped),
		reflect.TypeFor[session.Reason]():      Maybe(word),
		reflect.TypeFor[session.PhaseName]():   word,
		reflect.TypeFor[session.IdleChecker](): Maybe(word),
		reflect.TypeFor[session.IdleState]():   word,
		reflect.TypeFor[session.CheckResult](): OneOf(session.CheckOK, session.CheckWarning, session.CheckFailed),
		reflect.TypeFor[session.Feature]():     word,
		reflect.TypeFor[session.Role]():        OneOf("", session.RoleAdmin, session.RoleUser),
		reflect.TypeFor[session.AppState](): OneOf(session.AppStopped, session.AppStarting, session.AppReady,
			session.AppFailed),
		reflect.TypeFor[session.FileKind]():         OneOf(session.KindFile, session.KindDirectory, session.KindOther),
		reflect.TypeFor[session.FolderPermission](): OneOf(session.FolderReadWrite, session.FolderReadOnly),
		reflect.TypeFor[session.FolderMode]():       OneOf(session.FolderGeneral, session.FolderModel),
		reflect.TypeFor[session.FolderState](): OneOf(session.FolderReady, session.FolderTrashed,
			session.FolderDeleting),
		reflect.TypeFor[session.ImageWorkKind](): OneOf(session.WorkPull, session.WorkCommit,
			session.WorkBuild),
		reflect.TypeFor[session.ProjectKind](): OneOf(session.ProjectDevContainer, session.ProjectDockerfile,
			session.ProjectPackages, session.ProjectPlain),
		reflect.TypeFor[session.ImageWorkState](): OneOf(session.WorkRunning, session.WorkDone, session.WorkFailed,
			session.WorkCancelled),
		reflect.TypeFor[gpu.UUID]():       uuid,
		reflect.TypeFor[gpu.Bytes]():      size,
		reflect.TypeFor[gpu.Share]():      Whole(0, 1024*int64(gpu.WholeDevice)),
		reflect.TypeFor[gpu.MilliJoule](): Offset,
		reflect.TypeFor[gpu.MilliWatt]():  Whole(0, 1e9),
		reflect.TypeFor[gpu.Vendor]():     word,
		reflect.TypeFor[gpu.ProbeState](): Maybe(word),
		reflect.TypeFor[gpu.LossKind]():   word,
		reflect.TypeFor[gpu.Level](): Maybe(OneOf(gpu.LevelHardware, gpu.LevelHard, gpu.LevelPerProcess,
			gpu.LevelWatched, gpu.LevelNone)),
	},
}

// Bounds of a phrase, which holds others.
const (
	phraseDepth = 8
	phraseParts = 200
)

// phrase says what is wrong with a phrase and all that is in it.
func phrase(p *session.Phrase) string {
	parts := 0
	return phraseWithin(p, phraseDepth, &parts)
}

func phraseWithin(p *session.Phrase, depth int, parts *int) string {
	if *parts++; depth == 0 || *parts > phraseParts {
		return "it has too many parts"
	}
	if p.Say != "" && !made(p.Say, 64, "._-") || p.Hole != "" && !made(p.Hole, 64, "._-") {
		return Quote(p.Say+p.Hole) + " is not the name of a sentence"
	}
	if p.Count < -mostCount || p.Count > mostCounter {
		return strconv.Itoa(p.Count) + " is not a count"
	}
	if !plain(p.Text, mostPath) {
		p.Text = clean(p.Text, mostPath, false)
	}
	for i := range p.With {
		if problem := phraseWithin(&p.With[i], depth-1, parts); problem != "" {
			return problem
		}
	}
	return ""
}
