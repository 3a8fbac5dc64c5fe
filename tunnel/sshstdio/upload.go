package sshstdio

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"slipway/tunnel"
)

// uploadScript puts its input where its first argument says: whole, or not at
// all. It prints "hash <hex>" and has then moved the file if the hash is the one
// expected, or "check <path>" where the far side has no program for hashes, and
// leaves the file there for the caller to look at. It ends with 3 for another
// hash, 4 where the folder cannot be made or written, 5 where the disk is full
// or the input ended early.
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

// settleScript ends what uploadScript has left for checking.
const settleScript = `chmod -- "$2" "$3" && mv -f -- "$3" "$1" || { rm -f -- "$3"; exit 5; }`

// Upload puts what content gives into a file on the far side, with the given
// mode, making folders for it where needed. path is absolute or begins with
// "~/". sum is the SHA-256 of the content. The file is there, complete and
// checked, when Upload returns without an error; else whatever was there before
// still is. It needs sh, cat, chmod and mv over there and a few kilobytes of
// memory on either side.
func (r *Remote) Upload(ctx context.Context, content io.Reader, path string, mode fs.FileMode,
	sum [sha256.Size]byte) error {
	if !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "~/") {
		return fmt.Errorf("sshstdio: %q is neither absolute nor in the home folder", path)
	}
	want, bits := hex.EncodeToString(sum[:]), fmt.Sprintf("%04o", mode.Perm())
	command := shell(uploadScript, path, bits, want, newMark()[len("slipway-"):])
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

// shell is a command that runs a script whose first argument is a path.
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
			fmt.Sprintf("The folder of %s cannot be made or written on the host.", printable(path)),
			"Choose another folder, or ask for the right to write there.", err)
	case result.Exit == 5 && (strings.Contains(said, "No space left") || strings.Contains(said, "quota")):
		return tunnel.NewFault(tunnel.CodeDiskFull, "The host's disk is full.",
			"Free some space there, then try again.", err)
	}
	return tunnel.NewFault(tunnel.CodeInstallFailed,
		fmt.Sprintf("The file %s could not be written on the host.", printable(path)),
		"Look at the host's disk and quota, then try again.", err)
}
