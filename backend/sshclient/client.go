// Package sshclient makes sessions reachable by the ssh, scp, sftp, rsync and editors that a person has already. It
// keeps one folder: the key by which this installation logs in to sessions, the keys by which sessions answer, and a
// configuration for OpenSSH with one entry for each session, which is included from the person's own where they wish
// so.
//
// It opens no connection. The entries make ssh run `slipway ssh-proxy`, which goes the way of everything else: through
// the control plane and the agent.
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

// User is the name that sessions are logged in to with.
const User = "work"

// The files in the folder.
const (
	keyFile    = "id_container"
	knownFile  = "known_hosts"
	configFile = "config"
)

// Config says what a client stands on.
type Config struct {
	Dir     string // its folder, which it makes
	Person  string // the person's own ~/.ssh
	Program string // what the entries run: this program
	Home    string // the folder of the control plane, which that program is told
}

// Client is safe for concurrent use.
type Client struct {
	config Config
	signer ssh.Signer

	mu       sync.Mutex // guards what follows and the files
	told     []Session  // as Keep was given them
	sessions []Session  // those of told that an entry can be written for
	aliases  map[session.ID][]string
	written  bool // the configuration is as sessions say
}

// Open opens the folder and makes what is missing there.
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

// ownKey reads the key, or makes it at the first start. The public one is written beside it for people.
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
			"Remove it; a new one is made at the next start.")
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

// keyLine is a public key as a line of authorized_keys, without a comment.
func keyLine(key ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// Key is the public key by which this installation logs in.
func (c *Client) Key() string { return keyLine(c.signer.PublicKey()) }

// KeyFile is the path of the private key.
func (c *Client) KeyFile() string { return filepath.Join(c.config.Dir, keyFile) }

// ConfigFile is the path of the configuration that has the entries.
func (c *Client) ConfigFile() string { return filepath.Join(c.config.Dir, configFile) }

func (c *Client) knownFile() string { return filepath.Join(c.config.Dir, knownFile) }
