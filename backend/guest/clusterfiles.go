package guest

import (
	"cmp"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/atomicwriter"
	"golang.org/x/crypto/ssh"

	"slipway/backend/engine"
)

const (
	// The first and last line of our part of a person's ssh configuration.
	clusterBegin = "# slipway: the kernels of this session"
	clusterEnd   = "# slipway: end"
	clusterKey   = "id_slipway"
	// clusterPort is the default ssh port of kernels. Ports below 1024 would need another capability.
	clusterPort = 2222
)

func portOf(c engine.Cluster) int { return cmp.Or(c.Port, clusterPort) }

// setUpSSH reads an [engine.Cluster] as JSON and writes ~/.ssh, so that ssh to the other kernels needs no prompt. It
// runs as the work user, so a link in ~/.ssh cannot lead to files that the user cannot write.
func setUpSSH(in io.Reader, home string) error {
	var cluster engine.Cluster
	if err := json.NewDecoder(in).Decode(&cluster); err != nil {
		return err
	}
	host, err := ssh.ParsePrivateKey([]byte(cluster.HostKey))
	if err != nil {
		return fmt.Errorf("read host key: %w", err)
	}
	raw, err := ssh.ParseRawPrivateKey([]byte(cluster.UserKey))
	if err != nil {
		return fmt.Errorf("read user key: %w", err)
	}
	key, err := ssh.MarshalPrivateKey(raw, User) // the one form that every client reads
	if err != nil {
		return fmt.Errorf("write user key: %w", err)
	}
	dir := filepath.Join(home, ".ssh")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.Chmod(dir, 0o700)); err != nil {
		return err
	}
	names := make([]string, len(cluster.Hosts))
	for i, name := range cluster.Hosts {
		names[i] = "[" + name + "]:" + strconv.Itoa(portOf(cluster))
	}
	known := strings.Join(names, ",") + " " + strings.TrimSpace(string(ssh.MarshalAuthorizedKey(host.PublicKey())))
	return errors.Join(
		editOwn(filepath.Join(dir, clusterKey), func([]string) []string {
			return strings.Split(strings.TrimSpace(string(pem.EncodeToMemory(key))), "\n")
		}),
		editOwn(filepath.Join(dir, "known_hosts"), func(lines []string) []string {
			lines = slices.DeleteFunc(lines, func(line string) bool {
				return strings.HasPrefix(line, names[0]+",") || strings.HasPrefix(line, names[0]+" ")
			})
			return append(lines, known)
		}),
		editOwn(filepath.Join(dir, "config"), func(lines []string) []string {
			return append(clusterConfig(cluster), withoutOurs(lines)...)
		}),
	)
}

// clusterConfig returns our part of the ssh configuration. It comes first, because the first value of an option counts.
func clusterConfig(cluster engine.Cluster) []string {
	return []string{
		clusterBegin,
		"Host " + strings.Join(cluster.Hosts, " "),
		"    User " + User,
		"    Port " + strconv.Itoa(portOf(cluster)),
		"    IdentityFile ~/.ssh/" + clusterKey,
		"    IdentitiesOnly yes",
		"    StrictHostKeyChecking yes",
		"    LogLevel ERROR",
		"Host *",
		clusterEnd,
	}
}

func withoutOurs(lines []string) []string {
	begin, end := slices.Index(lines, clusterBegin), slices.Index(lines, clusterEnd)
	if begin < 0 || end < begin {
		return lines
	}
	return slices.Delete(lines, begin, end+1)
}

// editOwn atomically replaces a file of lines that only its owner can read.
func editOwn(path string, edit func([]string) []string) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var lines []string
	if text := strings.TrimRight(string(old), "\n"); text != "" {
		lines = strings.Split(text, "\n")
	}
	content := strings.Join(edit(lines), "\n") + "\n"
	if content == string(old) {
		return os.Chmod(path, 0o600)
	}
	return atomicwriter.WriteFile(path, []byte(content), 0o600)
}
