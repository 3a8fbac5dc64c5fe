package vet

import (
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
	mostSessions = 50_000
	mostRows     = 1_000_000 // samples and rows of accounts
	mostDevices  = 1024
	mostCPUs     = 1 << 16
	mostWarnings = 256
	mostLayers   = 1000
	mostSize     = 1 << 60 // bytes: sums of a few stay within 64 bits
	mostCount    = 1 << 31
	mostCounter  = 1 << 62
)

// made reports whether a text has 1 to most characters, all of them letters and
// digits of ASCII or among more.
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
	if len(text) != 12 {
		return false
	}
	for i := range len(text) {
		if c := text[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

func validName(text string) bool {
	return len(text) >= session.MinName && made(text, session.MaxName, "_.-") && strings.IndexByte(".-",
		text[0]) < 0 && strings.IndexByte(".-", text[len(text)-1]) < 0
}

func isDigest(text string) bool {
	rest, ok := strings.CutPrefix(text, "sha256:")
	return ok && len(rest) == 64 && strings.Trim(rest, "0123456789abcdef") == ""
}

// The kinds of texts.
var (
	id       = Rule{build: text("the id of a session", validID)}
	folderID = Rule{build: text("the id of a folder", validID)}
	name     = Rule{build: text("the name of a session", validName)}
	idOrName = Rule{build: text("the id or name of a session", func(text string) bool {
		return validID(text) || validName(text)
	})}

	// owner is the name of an account of an operating system, of any alphabet.
	owner = Rule{build: text("the name of an owner", func(text string) bool {
		return text != "" && still(text, 128) && !strings.ContainsAny(text, "/\n")
	})}
	// word is what programs decide by, and may be new in a newer agent.
	word = Rule{build: text("a word", func(text string) bool { return made(text, 64, "._-") && text[0] != '-' })}
	// mark names something for programs: an instance, a terminal, a version of a file.
	mark = Rule{build: text("a name for programs", func(text string) bool {
		return made(text, 200, "._:+/=-") && text[0] != '-'
	})}
	code = Rule{build: text("a code", func(text string) bool {
		return made(text, 128, "_.-") && text[0] >= 'a' && text[0] <= 'z' && strings.ToLower(text) == text
	})}
	uuid = Rule{build: text("the id of a device", func(text string) bool {
		return made(text, 128, "._:/+-") && text[0] != '-'
	})}
	hex = Rule{build: text("a checksum", func(text string) bool {
		return len(text) == 64 && strings.Trim(text, "0123456789abcdef") == ""
	})}
	digest = Rule{build: text("a digest", isDigest)}
	// reference can name an image. The grammar is checked where one is chosen.
	reference = Rule{build: text("the name of an image", func(text string) bool {
		return made(text, 512, "._:/@+-[]") && strings.IndexByte("-./@:+", text[0]) < 0 && !upward(text)
	})}
	imageID = Rule{build: text("the id of an image", session.ValidImageID)}
	host    = Rule{build: text("the name of a host", func(text string) bool {
		return made(text, 253, ".-") && strings.IndexByte(".-", text[0]) < 0
	})}
	kernel = Rule{build: text("the name of a kernel", func(text string) bool {
		number, sub := strings.CutPrefix(text, "sub")
		return text == session.MainKernel || sub && len(number) <= 4 && made(number, 4, "") && strings.Trim(number,
			"0123456789") == ""
	})}
	app = Rule{build: text("the id of an app", func(text string) bool {
		return made(text, 63, "-") && strings.ToLower(text) == text && text[0] != '-'
	})}
	tag = Rule{build: text("a tag", func(text string) bool {
		clean, err := session.CleanTags([]string{text})
		return err == nil && clean[0] == text
	})}
	label  = Rule{build: text("a label", func(text string) bool { return session.ValidateLabel(text) == nil })}
	folder = Rule{build: text("the name of a folder", func(text string) bool {
		return text != "" && session.ValidateFolderName(text) == nil
	})}
	// folderRef names a folder in a spec.
	folderRef = Rule{build: text("a folder", func(text string) bool {
		return validID(text) || session.ValidateFolderName(text) == nil
	})}
	subPath = Rule{build: text("a path in a folder", func(text string) bool {
		return session.CheckSubPath(text) == "" && still(text, mostPath)
	})}
	variable = Rule{build: text("the name of a variable", func(text string) bool {
		return made(text, 4<<20, "_") && (text[0] < '0' || text[0] > '9')
	})}

	// absolute is a path of a machine of whatever system that a person may be shown.
	absolute = Rule{build: text("an absolute path", func(text string) bool {
		drive := len(text) > 2 && made(text[:1], 1, "") && text[1] == ':' && (text[2] == '\\' || text[2] == '/')
		return (drive || strings.HasPrefix(text, "/")) && still(text, mostPath)
	})}
	// target is where something appears in a session.
	target = Rule{build: text("a path in a session", func(text string) bool {
		return strings.HasPrefix(text, "/") && path.Clean(text) == text && still(text, mostPath) &&
			!strings.ContainsAny(text, `:\`)
	})}
	// address is where a web page of an app begins.
	address = Rule{build: text("the path of an address", func(text string) bool {
		return strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "//") && len(text) <= 2048 &&
			plain(text, 2048) && !strings.ContainsAny(text, " \\\"<>`")
	})}
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
	port    = Rule{build: whole(0, 65535)}
	count   = Rule{build: whole(0, mostCount)}
	cpu     = Rule{build: whole(0, mostCPUs)}
	counter = Rule{build: whole(0, mostCounter)}
	size    = Rule{build: whole(0, mostSize)}
	part    = Rule{build: whole(0, 1_000_000)} // permyriad as drivers report it
	exit    = Rule{build: whole(-mostCount, 2*mostCount)}
	percent = Rule{build: number(0, 100)}
	amount  = Rule{build: number(-1, 1e9)}
)

// common are the rules of types that are the same wherever they stand.
var common = Tables{
	Types: map[reflect.Type]Rule{
		reflect.TypeFor[time.Time]():        Moment,
		reflect.TypeFor[session.ID]():       id,
		reflect.TypeFor[session.FolderID](): folderID,
		reflect.TypeFor[session.Code]():     code,
		reflect.TypeFor[session.Duration](): Whole(0, int64(520*7*24*time.Hour)),
		reflect.TypeFor[session.Phrase]():   Each(phrase),
		reflect.TypeFor[session.Type]():     OneOf("", session.Interactive, session.Batch),
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
		reflect.TypeFor[session.Role]():        OneOf("", session.RoleAdmin, session.RoleUser),
		reflect.TypeFor[session.AppState](): OneOf(session.AppStopped, session.AppStarting, session.AppReady,
			session.AppFailed),
		reflect.TypeFor[session.FileKind]():         OneOf(session.KindFile, session.KindDirectory, session.KindOther),
		reflect.TypeFor[session.FolderPermission](): OneOf(session.FolderReadWrite, session.FolderReadOnly),
		reflect.TypeFor[session.FolderMode]():       OneOf(session.FolderGeneral, session.FolderModel),
		reflect.TypeFor[session.FolderState](): OneOf(session.FolderReady, session.FolderTrashed,
			session.FolderDeleting),
		reflect.TypeFor[session.ImageWorkKind](): OneOf(session.WorkPull, session.WorkCommit),
		reflect.TypeFor[session.ImageWorkState](): OneOf(session.WorkRunning, session.WorkDone, session.WorkFailed,
			session.WorkCancelled),
		reflect.TypeFor[gpu.UUID]():       uuid,
		reflect.TypeFor[gpu.Bytes]():      size,
		reflect.TypeFor[gpu.Share]():      Whole(0, 1024*int64(gpu.WholeDevice)),
		reflect.TypeFor[gpu.MilliJoule](): counter,
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

// What packages with tables of their own need.
const (
	MostSessions = mostSessions
	MostRows     = mostRows
)

// Owner is the rule of names of owners.
func Owner() Rule { return owner }

// Mark is the rule of names for programs, such as a fingerprint or an address.
func Mark() Rule { return mark }

// Checksum is the rule of SHA-256 in hexadecimal.
func Checksum() Rule { return hex }

// Offset is the rule of places in streams of bytes.
func Offset() Rule { return counter }

// Message is the rule of sentences for people.
func Message() Rule { return message }
