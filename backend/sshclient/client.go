// Package sshclient makes sessions reachable by the user's own ssh, scp, sftp, rsync and editors. It manages a folder
// with the key of this installation, the host keys of sessions, and a configuration for OpenSSH with an entry for each
// session, which the user's own configuration can include. It opens no connection: the entries make ssh run `slipway
// ssh-proxy`, which connects through the control plane and the agent.
package sshclient

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/moby/sys/atomicwriter"
	"golang.org/x/crypto/ssh"

	"slipway/backend/session"
)

// User is the user name for logins to sessions.
const User = "work"

// The files in the folder.
const (
	keyFile    = "id_container"
	knownFile  = "known_hosts"
	configFile = "config"
)

// Config configures a client.
type Config struct {
	Dir     string // its folder, which it creates
	Person  string // the user's ~/.ssh
	Program string // this program, which the entries run
	Home    string // folder of the control plane, for that program
}

// Client is safe for concurrent use.
type Client struct {
	config Config
	signer ssh.Signer

	mu       sync.Mutex // guards the fields below and the files
	told     []Session  // the arguments of Keep
	sessions []Session  // those of them with an entry
	aliases  map[session.ID][]string
	written  bool // the files are up to date
}

// Open opens the folder and creates what is missing.
func Open(config Config) (*Client, error) {
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open the folder for ssh: %w", err)
	}
	signer, err := ownKey(filepath.Join(config.Dir, keyFile))
	if err != nil {
		return nil, err
	}
	return &Client{config: config, signer: signer}, nil
}

// ownKey reads the key, or creates it and a file with the public key at the first start.
func ownKey(path string) (ssh.Signer, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newKey(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read the key for sessions: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(data)
	if err != nil {
		return nil, session.WrapError(err, session.CodeSSHFailed, path+" is not a private key.",
			"Remove it; a new one is created at the next start.")
	}
	return signer, os.Chmod(path, 0o600) // ssh refuses a key that others may read
}

func newKey(path string) (ssh.Signer, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(private, "slipway")
	if err != nil {
		return nil, err
	}
	public := []byte(keyLine(signer.PublicKey()) + " slipway\n")
	if err := errors.Join(atomicwriter.WriteFile(path+".pub", public, 0o600),
		atomicwriter.WriteFile(path, pem.EncodeToMemory(block), 0o600)); err != nil {
		return nil, fmt.Errorf("write the key for sessions: %w", err)
	}
	return signer, nil
}

// keyLine returns a public key as a line of authorized_keys, without a comment.
func keyLine(key ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// Key returns the public key of this installation.
func (c *Client) Key() string { return keyLine(c.signer.PublicKey()) }

// KeyFile returns the path of the private key.
func (c *Client) KeyFile() string { return filepath.Join(c.config.Dir, keyFile) }

// ConfigFile returns the path of the configuration with the entries.
func (c *Client) ConfigFile() string { return filepath.Join(c.config.Dir, configFile) }

func (c *Client) knownFile() string { return filepath.Join(c.config.Dir, knownFile) }
