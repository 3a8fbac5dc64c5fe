package node

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"slipway/backend/session"
)

// findApptainer returns the path of Apptainer, or of Singularity, which it once was.
func findApptainer() (string, error) {
	for _, name := range []string{"apptainer", "singularity"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("this node has no apptainer")
}

// apptainer returns the command by which Apptainer makes the container of a plan and starts this program in it. The
// image is a folder of its own, because a site whose users may not mount has no overlays.
func (r *runner) apptainer(p *plan) (*exec.Cmd, error) {
	program, err := findApptainer()
	if err != nil {
		return nil, err
	}
	root := filepath.Join(r.place, rootFolder)
	if err := merge(p.Layers, root); err != nil {
		return nil, fmt.Errorf("copy the image: %w", err)
	}
	box := &mountList{args: []string{"--silent", "exec", "--containall", "--no-init", "--no-home", "--writable",
		"--no-mount", "hostfs,bind-paths,cwd", "--workdir", filepath.Join(r.place, workFolder),
		"--hostname", p.Hostname, "--pwd", "/"}}
	if p.Private {
		box.args = append(box.args, "--net", "--network", "none")
	}
	if box.root, err = openFolder(root); err != nil {
		return nil, err
	}
	defer box.root.close()
	if err := box.fill(p, r.place); err != nil {
		return nil, err
	}
	cmd := exec.Command(program, append(box.args, root, guestProgram, "contain")...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.place, "APPTAINER_TMPDIR=" + r.place,
		"SINGULARITY_TMPDIR=" + r.place}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, nil
}

// follow starts a process that kills Apptainer when this one ends, because Apptainer drops the signal that the kernel
// sends then. The container ends with Apptainer.
func (r *runner) follow() error {
	r.follower = exec.Command("/proc/self/exe", "follow", strconv.Itoa(r.first.Process.Pid))
	r.follower.Env = []string{}
	r.follower.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if _, err := r.follower.StdinPipe(); err != nil { // stays open as long as this process runs
		return err
	}
	return r.follower.Start()
}

// follow PID kills a process when its standard input ends.
func follow(args []string) int {
	signal.Ignore(ends()...) // which reach all processes of a job
	if len(args) != 1 {
		return 2
	}
	pid, err := strconv.Atoi(args[0])
	if err != nil || pid < 2 {
		return 2
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = syscall.Kill(pid, syscall.SIGKILL)
	return 0
}

// mountList collects what Apptainer mounts, and makes the places for it in the image.
type mountList struct {
	root *folder
	args []string
	err  error
}

// fill adds what every container has, as [mounter] mounts it for this program's own.
func (l *mountList) fill(p *plan, place string) error {
	for _, at := range []string{"/dev", "/proc", "/sys", "/tmp", "/var/tmp"} { // on which Apptainer mounts
		dir, err := l.root.directory(at, 0o755)
		if err != nil {
			return err
		}
		_ = dir.Close()
	}
	for at, content := range p.Files {
		if l.err == nil {
			l.err = l.root.write(at, []byte(content), 0o644)
		}
	}
	l.bind(filepath.Join(place, guestCopy), guestProgram, true)
	l.bind(filepath.Join(place, configCopy), "/.slipway/config.json", true)
	l.bind(filepath.Join(place, linkFolder), "/.slipway/link", true)
	l.bind(filepath.Join(place, spoolFolder), "/.slipway/spool", false)
	if !slices.ContainsFunc(p.Mounts, isHome) {
		l.bind(p.Home, session.Home, false)
	}
	for _, device := range p.Devices {
		if _, err := os.Stat(device); err == nil {
			l.bind(device, device, false)
		}
	}
	for _, m := range p.Mounts {
		l.bind(m.Source, m.Target, m.ReadOnly)
	}
	if len(p.Hidden) > 0 {
		nothing := filepath.Join(place, "nothing")
		l.err = errors.Join(l.err, os.Mkdir(nothing, 0o555))
		for _, at := range p.Hidden {
			l.bind(nothing, at, true)
		}
	}
	return l.err
}

// bind adds a file or a directory. The image has the place below no mount, and those in mounts are there already.
func (l *mountList) bind(from, at string, readOnly bool) {
	if l.err != nil {
		return
	}
	info, err := os.Stat(from)
	if err != nil {
		l.err = err
		return
	}
	open := l.root.place
	if info.IsDir() {
		open = func(at string) (*os.File, error) { return l.root.directory(at, 0o755) }
	}
	place, err := open(at)
	if err != nil {
		l.err = fmt.Errorf("mount %s: %w", at, err)
		return
	}
	_ = place.Close()
	words := []string{"type=bind", "source=" + from, "destination=" + at}
	if readOnly {
		words = append(words, "ro")
	}
	var line strings.Builder
	writer := csv.NewWriter(&line)
	l.err = writer.Write(words)
	writer.Flush()
	l.args = append(l.args, "--mount", strings.TrimSpace(line.String()))
}

// firstBelow returns the first process of a process namespace below that of a process that has made it.
func firstBelow(maker int) (int, error) {
	found, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		return 0, err
	}
	for _, path := range found {
		data, err := nodeFile(path)
		if err != nil {
			continue
		}
		facts := map[string][]string{}
		for line := range strings.Lines(string(data)) {
			name, words, _ := strings.Cut(line, ":")
			facts[name] = strings.Fields(words)
		}
		numbers := facts["NSpid"] // in the namespace of this process first
		if len(numbers) > 1 && numbers[len(numbers)-1] == "1" &&
			slices.Equal(facts["PPid"], []string{strconv.Itoa(maker)}) {
			return strconv.Atoi(numbers[0])
		}
	}
	return 0, errors.New("the container has no first process")
}
