package provision

import (
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"time"

	"slipway/backend/session"
)

// Beside finds programs: the running one if it fits the machine, so that both sides are of one build, or slipway or
// slipway-<os>-<arch> in a folder, normally that of the running program, or in ../lib/slipway, where packages install
// it.
type Beside struct {
	Dir  string
	Self string // path of the running program; may be empty
}

func (b Beside) Program(os, arch string) (string, error) {
	var tried error
	name := "slipway-" + os + "-" + arch
	for _, candidate := range []string{b.Self, filepath.Join(b.Dir, "slipway"), filepath.Join(b.Dir, name),
		filepath.Join(b.Dir, "..", "lib", "slipway", name)} {
		if candidate == "" {
			continue
		}
		err := fits(candidate, os, arch)
		if err == nil {
			return candidate, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			tried = errors.Join(tried, err)
		}
	}
	return "", session.WrapError(tried, session.CodeInstallFailed,
		fmt.Sprintf("There is no Slipway for %s/%s on this computer.", os, arch),
		fmt.Sprintf("Put slipway from the package for %s as slipway-%s-%s into %s, or build it: make agents",
			arch, os, arch, b.Dir))
}

// fits fails unless a file is a program for the machine that needs neither a loader nor libraries there.
func fits(path, system, arch string) error {
	file, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // only read
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[arch]
	if system != "linux" || file.Machine != machine {
		return fmt.Errorf("%s is for %s", path, file.Machine)
	}
	if slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return fmt.Errorf("%s needs libraries of the machine", path)
	}
	return nil
}

type program struct {
	here  string
	name  string // on the machine, with version and hash
	there string // path on the machine
	sum   [sha256.Size]byte
	size  int64
}

var odd = regexp.MustCompile(`[^A-Za-z0-9.+-]+`)

func (w *work) choose(found Findings) (program, error) {
	if w.opts.Programs == nil {
		self, err := os.Executable()
		if err != nil {
			return program{}, err
		}
		w.opts.Programs = Beside{Dir: filepath.Dir(self), Self: self}
	}
	p := program{}
	var err error
	if p.here, err = w.opts.Programs.Program(found.OS, found.Arch); err != nil {
		w.fail("upload", "Bring the program", err)
		return p, err
	}
	file, err := os.Open(p.here)
	if err != nil {
		return p, err
	}
	defer file.Close() //nolint:errcheck // only read
	sum := sha256.New()
	if p.size, err = io.Copy(sum, file); err != nil {
		return p, err
	}
	sum.Sum(p.sum[:0])
	version := cmp.Or(odd.ReplaceAllString(w.opts.Version, "-"), "unknown")
	p.name = fmt.Sprintf("slipway-%s-%s", version, hex.EncodeToString(p.sum[:8]))
	p.there = path.Join(found.Dir, "bin", p.name)
	return p, nil
}

// bring uploads a program unless it is there. A program with that name is complete, because uploads are verified.
func (w *work) bring(ctx context.Context, found Findings, p program) error {
	if slices.Contains(found.Held, p.name) {
		w.tell("upload", "Bring the program", stepSkipped, "It already exists.", "")
		return nil
	}
	return w.step("upload", "Bring the program", func() (string, error) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		patience := time.AfterFunc(stallTime, func() { cancel(errStalled) })
		defer patience.Stop()
		w.moved = func() { patience.Reset(stallTime) }
		text, err := w.carry(ctx, found, p)
		if err != nil && errors.Is(context.Cause(ctx), errStalled) {
			err = errStalled
		}
		return text, err
	})
}

// stallTime is how long an upload may make no progress, and how long unpacking may take.
const stallTime = time.Minute

var errStalled = &session.Error{Code: session.CodeInstallFailed, Message: "The upload stalled.",
	Hint: "Look at the connection to the machine and at its disks, then try again."}

// carry uploads a program, compressed if possible, which takes a third of the time.
func (w *work) carry(ctx context.Context, found Findings, p program) (string, error) {
	if !found.Gzip {
		file, err := os.Open(p.here)
		if err != nil {
			return "", err
		}
		defer file.Close() //nolint:errcheck // only read
		return sizeText(p.size), w.remote.Upload(ctx, &counted{Reader: file, total: p.size, tell: w.progress}, p.there,
			0o700, p.sum)
	}
	packed, size, sum, err := pack(p.here, w.moved)
	if err != nil {
		return "", err
	}
	defer packed.Close() //nolint:errcheck // it is removed
	there := path.Join(path.Dir(p.there), "."+p.name+".gz")
	if err := w.remote.Upload(ctx, &counted{Reader: packed, total: size, tell: w.progress}, there, 0o600,
		sum); err != nil {
		return "", err
	}
	w.moved()
	// gzip verifies what it unpacks.
	const script = `umask 077; gzip -dc -- "$1" >"$2.new" && chmod 700 "$2.new" && mv -f -- "$2.new" "$2"; e=$?; rm ` +
		`-f -- "$1" "$2.new"; exit $e`
	result, err := w.remote.Run(ctx, []string{"sh", "-c", script, "sh", there, p.there}, nil)
	if err != nil {
		return "", err
	}
	if result.Exit != 0 {
		return "", session.NewError(session.CodeInstallFailed, "The program could not be unpacked there.",
			"Look at the disk and the quota there: df -h. It said: "+clip(string(result.Stderr)))
	}
	return sizeText(size) + " compressed", nil
}

func sizeText(size int64) string { return fmt.Sprintf("%.1f MB", float64(size)/1e6) }

// pack compresses a file into an unnamed one. It calls moved for each piece.
func pack(from string, moved func()) (packed *os.File, size int64, sum [sha256.Size]byte, err error) {
	in, err := os.Open(from)
	if err != nil {
		return nil, 0, sum, err
	}
	defer in.Close() //nolint:errcheck // only read
	if packed, err = os.CreateTemp("", "slipway-*"); err != nil {
		return nil, 0, sum, err
	}
	if runtime.GOOS != "windows" { // Windows cannot remove open files
		err = os.Remove(packed.Name())
	}
	hash := sha256.New()
	if err == nil {
		z, _ := gzip.NewWriterLevel(io.MultiWriter(packed, hash), gzip.BestSpeed) // the level is valid
		_, err = io.Copy(z, &counted{Reader: in, tell: func(int64, int64) { moved() }})
		err = errors.Join(err, z.Close())
	}
	if err == nil {
		size, err = packed.Seek(0, io.SeekCurrent)
	}
	if err == nil {
		_, err = packed.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, 0, sum, errors.Join(err, packed.Close())
	}
	hash.Sum(sum[:0])
	return packed, size, sum, nil
}

func (w *work) progress(done, total int64) {
	w.moved()
	if w.opts.Report != nil {
		w.opts.Report.Progress(done, total)
	}
}

type counted struct {
	io.Reader
	done, total int64
	tell        func(done, total int64)
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if c.done += int64(n); n > 0 {
		c.tell(c.done, c.total)
	}
	return n, err
}
