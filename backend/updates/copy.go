package updates

import (
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"slipway/backend/session"
)

// advice says how this copy was installed and how to upgrade it. files is the address of the downloads.
func advice(files string) session.Phrase {
	program, err := os.Executable()
	if err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		program = ""
	}
	return session.Say(adviceFor(runtime.GOOS, "/", program), session.Fill("files", files))
}

// adviceFor returns the phrase for a program on a system whose files are below root.
func adviceFor(system, root, program string) string {
	beside := func(name string) bool {
		_, err := os.Stat(filepath.Join(filepath.Dir(program), name))
		return err == nil
	}
	switch {
	case system == "windows" && beside("uninstall.exe"):
		return "upgradeInstaller"
	case system == "linux" && ofDebian(root, program):
		return "upgradeDeb"
	case system == "linux" && ofRPM(root, program):
		return "upgradeRPM"
	case beside("../VERSION"): // build/VERSION, beside build/bin
		return "upgradeSource"
	}
	return "upgradeArchive"
}

// ofDebian reports whether the program belongs to the package for Debian.
func ofDebian(root, program string) bool {
	list, err := os.ReadFile(filepath.Join(root, "var/lib/dpkg/info/slipway.list"))
	return err == nil && slices.Contains(strings.Fields(string(list)), program)
}

// ofRPM reports whether the program is in the directory of a system's packages, which are RPMs.
func ofRPM(root, program string) bool {
	if path.Dir(program) != "/usr/bin" {
		return false
	}
	return slices.ContainsFunc([]string{"usr/lib/sysimage/rpm", "var/lib/rpm"}, func(dir string) bool {
		databases, err := filepath.Glob(filepath.Join(root, dir, "[Pr]*")) // Packages or rpmdb.sqlite
		return err == nil && len(databases) > 0
	})
}
