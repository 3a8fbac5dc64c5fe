package session

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Home is the home and working directory of every session.
const Home = "/home/work"

// MountTarget returns where m appears in the session: an absolute, clean path.
// An empty target takes the name of the folder or the base name of the source,
// a relative one lands under [Home].
func MountTarget(m Mount) string {
	target := m.Target
	if target == "" && m.Folder != "" {
		target = m.Folder
	}
	if target == "" {
		target = path.Base(strings.ReplaceAll(m.Source, `\`, "/"))
	}
	if !strings.HasPrefix(target, "/") {
		target = Home + "/" + target
	}
	return path.Clean(target)
}

// Targets that belong to the system. Of the first kind neither the directory
// nor anything in it can be a target, of the second only the directory itself.
var (
	systemTrees = []string{
		"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc",
		"/root", "/run", "/sbin", "/sys", "/usr", "/var",
	}
	systemPlaces = []string{"/", "/home", "/media", "/mnt", "/opt", "/srv", "/tmp"}
	// ownInHome are the names in the home that a session's own files have.
	ownInHome  = []string{".ssh", ".jupyter", ".terminfo", ".tmux.conf"}
	startFiles = regexp.MustCompile(`^\.[a-z0-9]+(rc|_profile)$`)
	driveRule  = regexp.MustCompile(`^[A-Za-z]:[\\/]`)
)

const maxPath = 4096

func (s Spec) validateMounts(f *findings) {
	if len(s.Mounts) > MaxMounts {
		f.add("mounts", CodeInvalidSource, fmt.Sprintf("There are %d mounts; %d is the most.", len(s.Mounts),
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
			f.add(field+".source", CodeInvalidSource, fmt.Sprintf("%q is not an absolute path.", clip(m.Source)),
				"Write the path of a directory from its root, for example /home/me/data.")
			continue
		}
		if e := checkTarget(m); e != nil {
			e.Field = field + ".target"
			*f = append(*f, *e)
			continue
		}
		target := MountTarget(m)
		for _, other := range targets {
			if e := checkOverlap(target, other); e != nil {
				e.Field = field + ".target"
				*f = append(*f, *e)
				break
			}
		}
		targets = append(targets, target)
	}
}

// validateFolder judges what a mount says of a folder by itself.
func (m Mount) validateFolder(f *findings, field string) bool {
	const hint = "Write the name of a folder, or the path of a directory of the machine."
	switch {
	case m.Source != "":
		f.add(field+".source", CodeInvalidSource,
			"A mount is of a folder or of a directory of the machine, not of both.", hint)
	case ValidateFolderName(m.Folder) != nil:
		f.add(field+".folder", CodeNoFolder, fmt.Sprintf("%q is not the name of a folder.", clip(m.Folder)), hint)
	case CheckSubPath(m.Path) != "":
		f.add(field+".path", CodeInvalidSource, CheckSubPath(m.Path),
			"Write the path of a directory in the folder, for example images/train.")
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

// checkTarget judges the target of one mount by itself.
func checkTarget(m Mount) *FieldError {
	raw, target := m.Target, MountTarget(m)
	if !printable(target) || strings.ContainsAny(target, `:\`) {
		return &FieldError{Code: CodeInvalidTarget, Message: fmt.Sprintf("%q cannot be a path inside the session.",
			clip(target)), Hint: `Use a path without ":", "\" and control characters.`}
	}
	if slices.Contains(strings.Split(raw, "/"), "..") {
		return &FieldError{Code: CodeInvalidTarget, Message: fmt.Sprintf("The path %q goes upwards.", clip(raw)),
			Hint: `Write it without "..".`}
	}
	if target == Home {
		return &FieldError{Code: CodeReservedTarget, Message: Home + " is the session's own home.",
			Hint: "Choose a path below it, for example " + Home + "/data."}
	}
	if reservedTarget(target) {
		return &FieldError{Code: CodeReservedTarget,
			Message: fmt.Sprintf("%s belongs to the system inside the session.", clip(target)),
			Hint:    "Write an alias such as data, which lands under " + Home + "."}
	}
	return nil
}

func reservedTarget(target string) bool {
	if slices.Contains(systemPlaces, target) || strings.HasPrefix(target, "/.slipway") {
		return true
	}
	for _, tree := range systemTrees {
		if within(target, tree) {
			return true
		}
	}
	inHome, ok := strings.CutPrefix(target, Home+"/")
	if !ok {
		return false
	}
	first, _, _ := strings.Cut(inHome, "/")
	return slices.Contains(ownInHome, first) || startFiles.MatchString(first) || strings.HasPrefix(first, ".slipway")
}

// checkOverlap judges a target against one of an earlier mount. A mount inside
// another would have to create its mount point in the outer one's source.
func checkOverlap(target, other string) *FieldError {
	switch {
	case target == other:
		return &FieldError{Code: CodeDuplicateTarget, Message: fmt.Sprintf("Another folder is mounted at %s already.",
			clip(target)), Hint: "Give one of them another alias."}
	case within(target, other):
		return &FieldError{Code: CodeOverlappingTarget,
			Message: fmt.Sprintf("%s lies inside %s, where another folder is mounted.", clip(target), clip(other)),
			Hint:    "Choose a path outside of it."}
	case within(other, target):
		return &FieldError{Code: CodeOverlappingTarget,
			Message: fmt.Sprintf("%s contains %s, where another folder is mounted.", clip(target), clip(other)),
			Hint:    "Choose another path."}
	}
	return nil
}

// Overlap reports whether two absolute, clean targets are one, or one lies in
// the other.
func Overlap(a, b string) bool { return within(a, b) || within(b, a) }

// within reports whether the clean path p is dir or lies in it.
func within(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }
