package session

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Home is the home and working directory of every session.
const Home = "/home/work"

// StartFileMark is the extended attribute of a file that the guest copied from the image into a new home. It has the
// time of its last change in nanoseconds since 1970, so that a file that was changed since is not taken for one.
const StartFileMark = "user.slipway.start-file"

// The folder of each person on a machine that is mounted in all of their sessions, for what package managers download.
// Where it is mounted is the usual place, so programs that look there need no variable.
const (
	CacheFolder = ".cache"
	CachePath   = Home + "/" + CacheFolder
)

// AdminSessions says who may launch administrator sessions on a machine.
type AdminSessions string

// Who may: admins, which is the default, everybody, or nobody.
const (
	AdminsOnly AdminSessions = "admins"
	AdminsAll  AdminSessions = "everyone"
	AdminsNone AdminSessions = "none"
)

// Refuse returns why a launch by an admin, or by a user, is refused; nil if it is not.
func (a AdminSessions) Refuse(byAdmin bool) *FieldError {
	if a == AdminsAll || byAdmin && a != AdminsNone {
		return nil
	}
	e := Fault("admin", KindForbidden, Say("adminForbidden"))
	e.Hint = "Launch an ordinary session, or ask the machine's owner to change session.admin."
	return &e
}

// MountTarget returns where m appears in the session: an absolute, clean path. An empty target is the name of the
// folder or the base name of the source, a relative one is under [Home].
func MountTarget(m Mount) string {
	target := cmp.Or(m.Target, m.Folder)
	if target == "" {
		target = path.Base(strings.ReplaceAll(m.Source, `\`, "/"))
	}
	if !strings.HasPrefix(target, "/") {
		target = Home + "/" + target
	}
	return path.Clean(target)
}

// Targets that belong to the system. Of the first kind neither the directory nor anything in it can be a target, of the
// second only the directory itself.
var (
	systemTrees = []string{
		"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc",
		"/root", "/run", "/sbin", "/sys", "/usr", "/var",
	}
	systemPlaces = []string{"/", "/home", "/media", "/mnt", "/opt", "/srv", "/tmp"}
	driveRule    = regexp.MustCompile(`^[A-Za-z]:[\\/]`)
)

const maxPath = 4096

// CheckMounts returns everything that is wrong with the mounts of a session.
func CheckMounts(mounts []Mount) []FieldError {
	var f findings
	Spec{Mounts: mounts}.validateMounts(&f)
	return f
}

func (s Spec) validateMounts(f *findings) {
	if len(s.Mounts) > MaxMounts {
		f.add("mounts", KindInvalid, fmt.Sprintf("There are %d mounts; the maximum is %d.", len(s.Mounts),
			MaxMounts), "Mount a directory that holds several of them.")
		return
	}
	targets := make([]string, 0, len(s.Mounts))
	for i, m := range s.Mounts {
		field := fmt.Sprintf("mounts[%d]", i)
		if m.Folder != "" || m.Source == "" && m.Path != "" {
			if !m.validateFolder(f, field) {
				continue
			}
		} else if !absolute(m.Source) || !printable(m.Source) {
			f.say(field+".source", KindInvalid, Say("sourceAbsolute"))
			continue
		}
		if code, said := checkTarget(m); said.Say != "" {
			f.say(field+".target", code, said)
			continue
		}
		target := MountTarget(m)
		for _, other := range targets {
			if code, said := checkOverlap(target, other); said.Say != "" && !inHome(target, other) {
				f.say(field+".target", code, said)
				break
			}
		}
		targets = append(targets, target)
	}
}

func (m Mount) validateFolder(f *findings, field string) bool {
	const hint = "Write the name of a folder, or the path of a directory of the machine."
	switch {
	case m.Source != "":
		f.add(field+".source", KindInvalid,
			"A mount is of a folder or of a directory of the machine, not of both.", hint)
	case FolderNames.Check(m.Folder) != nil:
		f.say(field+".folder", KindNotFound, Say("folderGone", Fill("name", Clip(m.Folder))))
	case CheckSubPath(m.Path) != "":
		f.say(field+".path", KindInvalid, Say("pathOutside"))
	default:
		return true
	}
	return false
}

func absolute(source string) bool {
	return strings.HasPrefix(source, "/") || driveRule.MatchString(source)
}

func printable(text string) bool {
	return len(text) <= maxPath && !strings.ContainsFunc(text, func(r rune) bool {
		return Unprintable(r) || r == unicode.ReplacementChar
	})
}

// checkTarget checks the target of one mount; an empty phrase means that it is fine.
func checkTarget(m Mount) (Kind, Phrase) {
	switch target := MountTarget(m); {
	case !printable(target) || strings.ContainsAny(target, `:\`):
		return KindInvalid, Say("targetCharacters")
	case slices.Contains(strings.Split(m.Target, "/"), ".."):
		return KindInvalid, Say("targetUp")
	case target == Home && m.Folder == "":
		return KindReserved, Say("targetHome")
	case target == Home && m.ReadOnly:
		return KindConflict, Say("targetHomeReadOnly")
	case reservedTarget(target):
		return KindReserved, Say("targetSystem", Fill("target", Clip(target)))
	}
	return "", Phrase{}
}

// reservedTarget reports whether a mount target belongs to the system or to the session's own files.
func reservedTarget(target string) bool {
	if slices.Contains(systemPlaces, target) || strings.HasPrefix(target, "/.slipway") ||
		slices.ContainsFunc(systemTrees, func(tree string) bool { return within(target, tree) }) {
		return true
	}
	inHome, ok := strings.CutPrefix(target, Home+"/")
	first, _, _ := strings.Cut(inHome, "/")
	return ok && ownInHomeRule().MatchString(first)
}

// checkOverlap checks a target against an earlier one: a nested mount would need a mount point in the outer source.
func checkOverlap(target, other string) (Kind, Phrase) {
	switch {
	case target == other:
		return KindDuplicate, Say("targetDuplicate", Fill("target", Clip(target)))
	case within(target, other):
		return KindConflict, Say("targetInside", Fill("target", Clip(target)), Fill("other", Clip(other)))
	case within(other, target):
		return KindConflict, Say("targetAround", Fill("target", Clip(target)), Fill("other", Clip(other)))
	}
	return "", Phrase{}
}

// inHome reports whether one of two targets is the home and the other lies in it, where the agent makes mount points.
func inHome(a, b string) bool { return a != b && (a == Home || b == Home) && Overlap(a, b) }

// Overlap reports whether two absolute, clean targets are one, or one lies in the other.
func Overlap(a, b string) bool { return within(a, b) || within(b, a) }

func within(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }
