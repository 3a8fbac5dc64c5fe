package sshstdio

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"slipway/tunnel"
	"slipway/tunnel/askpass"
)

// Result is the result of a command on the far side.
type Result struct {
	Stdout []byte
	Stderr []byte // the last 16 KiB, with the messages of ssh and the login shell
	Exit   int    // exit code
}

// maxOutput is how much a command of Run may print, in bytes.
const maxOutput = 4 << 20

var errOutput = errors.New("sshstdio: the command prints more than 4 MiB")

// Run runs a command on the far side to its end. The arguments arrive unchanged; "~/" at the beginning of the first one
// is the account's home. Stdin may be nil. Another exit code than 0 is not an error of Run. Errors are of type
// [tunnel.Fault]. When ctx ends, the connection to the command is cut, and most commands then end by themselves.
func (r *Remote) Run(ctx context.Context, command []string, stdin io.Reader) (Result, error) {
	var out limited
	stderr, exit, err := r.stream(ctx, command, stdin, &out)
	if err != nil {
		return Result{}, err
	}
	return Result{Stdout: out.Bytes(), Stderr: []byte(stderr), Exit: exit}, nil
}

// limited is a buffer of at most maxOutput bytes.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxOutput {
		return 0, errOutput
	}
	return l.Buffer.Write(p)
}

// stream is Run with any amount of output.
func (r *Remote) stream(ctx context.Context, command []string, stdin io.Reader,
	stdout io.Writer) (stderr string, exit int, err error) {
	if len(command) == 0 {
		return "", 0, errors.New("sshstdio: no command to run")
	}
	shared, release, err := r.shared(ctx)
	if err != nil {
		return "", 0, err
	}
	defer release()
	mark := newMark()
	args := append(r.options(shared), runScript(mark, command))
	inner := &between{to: stdout, mark: mark}
	var asking *askpass.Questions
	if shared.socket == "" { // else the connection is up
		if asking, err = askpass.Listen(ctx, r.folder, r.config.Asker); err != nil {
			return "", 0, err
		}
	}
	defer asking.Close()
	c, socket, err := r.spawn(args, asking)
	if err != nil {
		return "", 0, err
	}
	defer func() {
		_ = socket.Close()
		c.end(ctx.Err() != nil)
	}()
	stop := context.AfterFunc(ctx, func() { _ = socket.Close() })
	defer stop()
	feeding := make(chan error, 1)
	go func() { feeding <- feed(socket, stdin) }()
	_, err = io.Copy(inner, socket)
	_ = socket.Close() // lets feed end, unless stdin blocks
	if ctxErr := ctx.Err(); ctxErr != nil {
		return "", 0, explainTimeout(c, ctxErr)
	}
	// A command that leaves input unread makes the end a reset.
	tooMuch := errors.Is(err, errNoise) || errors.Is(err, errOutput)
	if exit, ok := inner.end(); ok && !tooMuch {
		c.settle(lastWords) // for its messages
		select {
		case err := <-feeding:
			if err != nil {
				return "", 0, err
			}
		default: // the command did not read all of it
		}
		return c.messages.String(), exit, nil
	}
	if tooMuch {
		return "", 0, &tunnel.Fault{Code: tunnel.CodeInstallFailed, Message: "The host printed too much output.",
			Hint: "Check what its login shell prints in sessions without a terminal.", Err: err}
	}
	return "", 0, explain(ctx, c, asking, io.ErrUnexpectedEOF)
}

// feed copies stdin to a command and ends its input. It fails if stdin does; that the command does not read all is no
// failure.
func feed(socket io.Writer, stdin io.Reader) error {
	reader := &tracked{Reader: stdin}
	if stdin != nil {
		_, _ = io.Copy(socket, reader)
	}
	if half, ok := socket.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	return reader.err
}

// tracked remembers why reading failed.
type tracked struct {
	io.Reader
	err error
}

func (t *tracked) Read(p []byte) (int, error) {
	n, err := t.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		t.err = err
	}
	return n, err
}

// uploadScript writes its input to the file of its first argument: all of it, or nothing. It prints "hash <hex>" and
// has then moved the file if the hash is the expected one, or "check <path>" where the far side has no program for
// hashes, and leaves the file there for the caller to check. It exits with 3 for another hash, 4 if the folder cannot
// be made or written, 5 if the disk is full or the input ended early.
const uploadScript = `set -u; umask 077
d=$(dirname -- "$1") || exit 4
mkdir -p -- "$d" && [ -w "$d" ] || exit 4
t=$d/.slipway-upload.$4
trap 'rm -f -- "$t"' EXIT; trap 'exit 1' HUP INT TERM
cat >"$t" || exit 5
if command -v sha256sum >/dev/null 2>&1; then h=$(sha256sum <"$t")
elif command -v shasum >/dev/null 2>&1; then h=$(shasum -a 256 <"$t")
elif command -v openssl >/dev/null 2>&1; then h=$(openssl dgst -sha256 -r <"$t")
elif command -v busybox >/dev/null 2>&1; then h=$(busybox sha256sum <"$t")
else trap - EXIT; echo "check $t"; exit 0; fi
h=${h%% *}; echo "hash $h"
[ "$h" = "$3" ] || exit 3
chmod -- "$2" "$t" && mv -f -- "$t" "$1" || exit 5
trap - EXIT`

// settleScript moves the file that uploadScript has left for checking.
const settleScript = `chmod -- "$2" "$3" && mv -f -- "$3" "$1" || { rm -f -- "$3"; exit 5; }`

// Upload writes content to a file on the far side, with the given mode, and makes its folders. path is absolute or
// begins with "~/". sum is the SHA-256 of the content. If Upload succeeds the file is complete and checked, else it is
// unchanged. The far side needs sh, cat, chmod and mv.
func (r *Remote) Upload(ctx context.Context, content io.Reader, path string, mode fs.FileMode,
	sum [sha256.Size]byte) error {
	if !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "~/") {
		return fmt.Errorf("sshstdio: %q is neither absolute nor in the home folder", path)
	}
	want, bits := hex.EncodeToString(sum[:]), fmt.Sprintf("%04o", mode.Perm())
	command := shell(uploadScript, path, bits, want, rand.Text())
	result, err := r.Run(ctx, command, content)
	if err != nil {
		return err
	}
	if result.Exit != 0 {
		return uploadFault(path, result)
	}
	word, rest, _ := strings.Cut(strings.TrimSpace(string(result.Stdout)), " ")
	switch {
	case word == "hash" && rest == want:
		return nil
	case word == "check" && rest != "":
		return r.settle(ctx, path, bits, rest, want)
	}
	return uploadFault(path, result)
}

// shell returns a command that runs a script whose first argument is a path.
func shell(text, path string, args ...string) []string {
	expand := `case $1 in "~/"*) p=$HOME/${1#"~/"}; shift; set -- "$p" "$@";; esac; `
	return append([]string{"sh", "-c", expand + text, "sh", path}, args...)
}

// settle checks an upload by reading it back, and moves it into place.
func (r *Remote) settle(ctx context.Context, path, bits, temporary, want string) error {
	hash := sha256.New()
	_, exit, err := r.stream(ctx, []string{"cat", temporary}, nil, hash)
	if err != nil {
		return err
	}
	if got := hex.EncodeToString(hash.Sum(nil)); exit != 0 || got != want {
		_, err := r.Run(ctx, []string{"rm", "-f", temporary}, nil)
		return errors.Join(uploadFault(path, Result{Exit: 3}), err)
	}
	result, err := r.Run(ctx, shell(settleScript, path, bits, temporary), nil)
	if err != nil {
		return err
	}
	if result.Exit != 0 {
		return uploadFault(path, result)
	}
	return nil
}

func uploadFault(path string, result Result) error {
	said := lastMessage(string(result.Stderr))
	err := fmt.Errorf("code %d: %s", result.Exit, orSilence(said))
	switch {
	case result.Exit == 3:
		return tunnel.NewFault(tunnel.CodeInstallFailed, "Checksum mismatch: the file was damaged in transfer.",
			"Try again. If it happens again, the host's disk may be failing.", err)
	case result.Exit == 4:
		return tunnel.NewFault(tunnel.CodeInstallFailed,
			fmt.Sprintf("The folder of %s cannot be made or written on the host.", askpass.Printable(path)),
			"Choose another folder, or ask for the right to write there.", err)
	case result.Exit == 5 && (strings.Contains(said, "No space left") || strings.Contains(said, "quota")):
		return tunnel.NewFault(tunnel.CodeDiskFull, "The host's disk is full.",
			"Free some space there, then try again.", err)
	}
	return tunnel.NewFault(tunnel.CodeInstallFailed,
		fmt.Sprintf("The file %s could not be written on the host.", askpass.Printable(path)),
		"Look at the host's disk and quota, then try again.", err)
}
