package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"testing"
)

// guestFiles are the files of the guest that name paths of the container, each
// with the reason why no link of an image leads it, as root, to what it must not
// touch.
var guestFiles = map[string]string{
	"backend/guest/tree_linux.go":       "it is how the guest reaches the file system as root",
	"backend/guest/kernelfile_linux.go": "/proc and /sys are the kernel's",
	"backend/guest/shell.go":            "it looks for programs and opens none",
	"backend/guest/spawn_linux.go":      "it is the person by then; before that it writes to /proc",
	"backend/guest/files_linux.go":      "it runs as the person",
	"backend/guest/clusterfiles.go":     "it runs as the person",
	"backend/guest/sshclient_linux.go":  "it runs as the person",
	"backend/guest/shared_linux.go":     "it is the person, where the network is shared",
}

// pathCalls are the functions, by their package, that follow a path.
var pathCalls = map[string][]string{
	"os": {
		"Chdir", "Chmod", "Chown", "Chtimes", "CopyFS", "Create", "CreateTemp", "DirFS", "Lchown", "Link", "Lstat",
		"Mkdir", "MkdirAll", "MkdirTemp",
		"Open", "OpenFile", "OpenInRoot", "OpenRoot", "ReadDir", "ReadFile", "Readlink", "Remove", "RemoveAll",
		"Rename", "Stat", "Symlink", "Truncate", "WriteFile",
	},
	"filepath": {"EvalSymlinks", "Glob", "Walk", "WalkDir"},
	"unix": {
		"Access", "Chdir", "Chmod", "Chown", "Chroot", "Creat", "Faccessat", "Fchmodat", "Fchownat", "Fstatat",
		"Lchown", "Link", "Linkat", "Lstat", "Lutimes",
		"Mkdir", "Mkdirat", "Mkfifo", "Mknod", "Mknodat", "Mount", "Open", "Openat", "Openat2", "Readlink",
		"Readlinkat", "Rename", "Renameat", "Renameat2",
		"Rmdir", "Setxattr", "Stat", "Statfs", "Symlink", "Symlinkat", "Truncate", "Unlink", "Unlinkat", "Utimes",
		"UtimesNanoAt",
	},
	"syscall": {"Access", "Chdir", "Chmod", "Chown", "Creat", "Lchown", "Link", "Lstat", "Mkdir", "Mknod", "Mount",
		"Open", "Openat", "Rename", "Rmdir", "Stat", "Symlink", "Truncate", "Unlink"},
	"pty":    {"Open", "Start", "StartWithSize"},
	"ioutil": {"ReadFile", "WriteFile", "ReadDir", "TempFile", "TempDir"},
}

func TestTheGuestFollowsPathsInFewPlaces(t *testing.T) {
	stale := maps.Clone(guestFiles)
	for _, f := range goFiles(t) {
		if f.isTest() || f.pkg() != "backend/guest" {
			continue
		}
		allowOnly(t, f.path, followed(f), guestFiles, stale)
	}
	for path := range stale {
		t.Errorf("%s follows no path: take it out of the table", path)
	}
}

func TestAPathThatIsFollowedIsFound(t *testing.T) {
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, "x.go", `package x
import ("os"; "path/filepath"; "golang.org/x/sys/unix")
func f() { os.ReadFile("/etc/passwd"); filepath.WalkDir("/home", nil); unix.Lchown("/x", 0, 0); os.Getenv("HOME") }
`, 0)
	if err != nil {
		t.Fatal(err)
	}
	if found := followed(sourceFile{path: "x.go", syntax: syntax, set: set}); len(found) != 3 {
		t.Errorf("found %q", found)
	}
}

// followed are where a file follows a path.
func followed(f sourceFile) []string {
	var found []string
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		e, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if pkg, ok := e.X.(*ast.Ident); ok && pkg.Obj == nil && slices.Contains(pathCalls[pkg.Name], e.Sel.Name) {
			found = append(found,
				fmt.Sprintf("%s uses %s.%s: go through tree, or say in guestFiles why no link matters", f.at(e.Pos()),
					pkg.Name, e.Sel.Name))
		}
		return true
	})
	return found
}
