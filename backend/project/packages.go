package project

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"slipway/backend/session"
)

// packageFiles are the files that name packages, in the order in which they decide what kind of project it is. Apart
// from those of Python, of which only the first counts, each adds to the image.
var packageFiles = []string{"environment.yml", "requirements.txt", "Pipfile", "pyproject.toml", "setup.py", "apt.txt",
	"install.R", "postBuild", "runtime.txt", "start"}

const (
	// work is where the build has the project's files.
	work = "/opt/slipway-project"
	// Debian's Python refuses pip without the first, and pip warns root without the second.
	pip = "RUN --mount=type=cache,target=/var/cache/pip PIP_CACHE_DIR=/var/cache/pip \\\n" +
		"    PIP_BREAK_SYSTEM_PACKAGES=1 PIP_ROOT_USER_ACTION=ignore \\\n    "
	install = pip + "python3 -m pip install "
)

// readPackages makes the Dockerfile of the lists of packages in dir.
func (p *Plan) readPackages(dir, base string) (err error) {
	if !session.ValidImage(base) {
		return invalid("environment", "The image that is extended is missing.", "Choose an environment.")
	}
	if p.tree, err = fs.Sub(p.tree, dir); err != nil {
		return p.unread(dir, err)
	}
	has := func(file string) bool {
		info, err := fs.Stat(p.tree, file)
		return err == nil && info.Mode().IsRegular()
	}
	b := builder{plan: p, has: has}
	b.line("FROM " + base)
	b.line("USER root")
	b.line("WORKDIR " + work)
	begun := len(b.lines)
	if has("apt.txt") {
		if err := b.apt(); err != nil {
			return err
		}
	}
	if err := b.python(path.Base(p.File)); err != nil {
		return err
	}
	if has("install.R") {
		b.copy("install.R")
		b.line("RUN Rscript install.R")
	}
	if has("postBuild") {
		b.copyAll()
		b.line("RUN chmod +x postBuild && ./postBuild")
	}
	if has("runtime.txt") {
		b.runtime(base)
	}
	if has("start") {
		b.start(dir)
	}
	if len(b.lines) == begun { // nothing is installed
		return nil
	}
	p.Generated, p.Dockerfile, p.Bases = true, strings.Join(b.lines, "\n")+"\n", []string{base}
	if b.all {
		p.files, err = contextFiles(p.tree, Dockerfile)
		return err
	}
	slices.Sort(p.files)
	p.files = slices.Compact(p.files)
	return nil
}

// builder writes a Dockerfile. What changes least comes first, so that a change repeats only what follows it.
type builder struct {
	plan  *Plan
	has   func(file string) bool
	lines []string
	all   bool // the whole context is copied
}

func (b *builder) line(text string) { b.lines = append(b.lines, text) }

// copy adds those of the files that exist.
func (b *builder) copy(files ...string) {
	files = slices.DeleteFunc(files, func(file string) bool { return !b.has(file) })
	if b.all || len(files) == 0 {
		return
	}
	b.plan.files = append(b.plan.files, files...)
	b.line("COPY " + strings.Join(files, " ") + " ./")
}

// copyAll adds the whole project.
func (b *builder) copyAll() {
	if b.all {
		return
	}
	b.all = true
	b.line("COPY . .")
}

// debianPackage is the name of a package, with its version if one is asked for.
var debianPackage = regexp.MustCompile(`^[a-z0-9][a-z0-9.+-]*(:[a-z0-9]+)?(=[A-Za-z0-9.+:~-]+)?$`)

func (b *builder) apt() error {
	text, err := b.plan.read("apt.txt")
	if err != nil {
		return err
	}
	var names []string
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		for name := range strings.FieldsSeq(line) {
			if !debianPackage.MatchString(name) {
				return invalid("apt.txt", fmt.Sprintf("%q in apt.txt is not the name of a Debian package.",
					session.Clip(name)), "Write one name on each line.")
			}
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	b.line("RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \\\n    " +
		strings.Join(names, " ") + " && rm -rf /var/lib/apt/lists/*")
	return nil
}

// python installs what the first file of Python asks for.
func (b *builder) python(first string) error {
	pythons := packageFiles[:slices.Index(packageFiles, "apt.txt")]
	if !slices.Contains(pythons, first) {
		at := slices.IndexFunc(pythons, b.has)
		if at < 0 {
			return nil
		}
		first = pythons[at]
	}
	switch first {
	case "environment.yml":
		b.copy("environment.yml")
		b.line("RUN conda=$(command -v mamba || command -v micromamba || command -v conda) || \\\n" +
			"    { echo 'environment.yml needs an environment with conda, mamba or micromamba.' >&2; exit 1; }; \\\n" +
			"    \"$conda\" env update -y -n base -f environment.yml")
	case "requirements.txt":
		text, err := b.plan.read("requirements.txt")
		if err != nil {
			return err
		}
		if local(text) {
			b.copyAll()
		}
		b.copy("requirements.txt")
		b.line(install + "-r requirements.txt")
	case "Pipfile":
		b.copy("Pipfile", "Pipfile.lock")
		b.line(pip + "sh -c 'python3 -m pip install pipenv && python3 -m pipenv install --system'")
	case "pyproject.toml":
		if b.has("uv.lock") {
			b.copy("pyproject.toml", "uv.lock")
			b.line(pip + "sh -c 'python3 -m pip install uv && " +
				"uv export --frozen --no-emit-project -o /tmp/locked && python3 -m pip install -r /tmp/locked'")
			return nil
		}
		fallthrough
	case "setup.py":
		b.copyAll()
		b.line(install + ".")
	}
	return nil
}

var (
	asksPython = regexp.MustCompile(`^python-(\d+(?:\.\d+)?)`)
	hasPython  = regexp.MustCompile(`(?:^|[/:-])python[:-](\d+\.\d+)`)
)

// runtime notes what runtime.txt asks for, unless the name of the image says that it has that.
func (b *builder) runtime(base string) {
	text, _ := readText(b.plan.tree, "runtime.txt") // what cannot be read asks for nothing
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	if asked := asksPython.FindStringSubmatch(text); asked != nil {
		text = "Python " + asked[1]
		has := hasPython.FindStringSubmatch(base)
		if has != nil && strings.HasPrefix(has[1]+".", asked[1]+".") {
			return
		}
	}
	b.plan.leave("runtime.txt", "projectRuntime", session.Fill("version", session.Clip(text)))
}

// prepares is how a start of repo2docker ends, which prepares something and then runs the command that it gets.
var prepares = regexp.MustCompile(`(?m)^\s*exec\s+"?\$\{?@`)

// start has sessions run the file start in dir first, without a command. Another file of that name is left.
func (b *builder) start(dir string) {
	text, err := readText(b.plan.tree, "start")
	if err != nil || !prepares.MatchString(text) {
		b.plan.leave("start", "projectStart")
		return
	}
	run := "sh" // it need not be executable
	line, _, _ := strings.Cut(text, "\n")
	if program, ok := strings.CutPrefix(line, "#!"); ok {
		run = strings.TrimSpace(program)
		if path, option, has := strings.Cut(run, " "); has { // one, as for the kernel
			run = path + " " + session.ShellWord(strings.TrimSpace(option))
		}
	}
	b.plan.Setup = "set -e\ncd " + session.ShellWord(b.plan.workspace) + "\necho start\n" + run + " " +
		session.ShellWord("./"+path.Join(dir, "start")) + " true\n"
	b.plan.leave("start", "projectStartExports")
}

// local reports whether requirements name other files of the project.
func local(requirements string) bool {
	for line := range strings.Lines(requirements) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
		switch {
		case line == "", strings.HasPrefix(line, "#"), strings.HasPrefix(line, "--index-url"),
			strings.HasPrefix(line, "--extra-index-url"), strings.HasPrefix(line, "--pre"):
		case strings.HasPrefix(line, "-"), strings.HasPrefix(line, "."), strings.HasPrefix(line, "file:"),
			strings.HasSuffix(line, ".whl"), strings.Contains(line, "@ file:"):
			return true
		}
	}
	return false
}
