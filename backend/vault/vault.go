// Package vault keeps values that nothing else of Slipway stores: in the keyring of the operating system (Secret
// Service, macOS Keychain, Windows Credential Manager), or, where there is none or it refuses, in a file that only its
// person can read.
package vault

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/moby/sys/atomicwriter"
	"github.com/zalando/go-keyring"

	"slipway/backend/session"
)

// Where a value is kept.
const (
	InKeyring = "keyring"
	InFile    = "file"
)

// patience is how long a keyring may take, which may ask its person to unlock it.
const patience = 45 * time.Second

// Vault is safe for concurrent use.
type Vault struct {
	service string // under which the keyring lists the values; empty: the keyring is not used
	path    string
	mu      sync.Mutex // held while the file is read or changed
}

// New returns a vault with the file at path. service is empty if the keyring is not to be used.
func New(service, path string) *Vault { return &Vault{service: service, path: path} }

// Set keeps a value under a key and returns where.
func (v *Vault) Set(key, value string) (kept string, err error) {
	if v.ask(func() error { return keyring.Set(v.service, key, value) }) == nil {
		return InKeyring, v.change(func(values map[string]string) { delete(values, key) })
	}
	return InFile, v.change(func(values map[string]string) { values[key] = value })
}

// Get returns the value of a key from where it is kept. It fails with settings_update_failed.
func (v *Vault) Get(key, kept string) (value string, err error) {
	if kept == InKeyring {
		if err := v.ask(func() (err error) {
			value, err = keyring.Get(v.service, key)
			return err
		}); err != nil {
			return "", session.WrapError(err, session.CodeSettingsFailed,
				"The keyring of this computer did not return "+key+".", "Unlock the keyring, or set the value again.")
		}
		return value, nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	values, err := v.read()
	value, found := values[key]
	if err == nil && !found {
		err = session.NewError(session.CodeSettingsFailed, "The value of "+key+" is no longer stored.",
			"Set it again.")
	}
	return value, err
}

// Delete removes a value wherever it is.
func (v *Vault) Delete(key string) error {
	_ = v.ask(func() error { return keyring.Delete(v.service, key) }) // most often it has none
	return v.change(func(values map[string]string) { delete(values, key) })
}

var errNoKeyring = errors.New("no keyring")

// ask calls the keyring, which may not answer.
func (v *Vault) ask(call func() error) error {
	if v.service == "" {
		return errNoKeyring
	}
	answer := make(chan error, 1)
	go func() { answer <- call() }()
	select {
	case err := <-answer:
		return err
	case <-time.After(patience):
		return errors.New("the keyring does not answer")
	}
}

// read returns the values in the file. The caller holds mu.
func (v *Vault) read() (map[string]string, error) {
	values := map[string]string{}
	data, err := os.ReadFile(v.path)
	if err == nil {
		err = json.Unmarshal(data, &values)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return values, nil
	}
	return nil, session.WrapError(err, session.CodeSettingsFailed, "The file "+v.path+" cannot be read.",
		"Check its permissions, or remove it and set the values again.")
}

func (v *Vault) change(with func(map[string]string)) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	values, err := v.read()
	if err != nil {
		return err
	}
	before := len(values)
	with(values)
	if before == 0 && len(values) == 0 {
		return nil // and no file
	}
	data, err := json.Marshal(values)
	if err == nil {
		err = atomicwriter.WriteFile(v.path, data, 0o600)
	}
	if err != nil {
		return session.WrapError(err, session.CodeSettingsFailed, "The file "+v.path+" cannot be written.",
			"Check the free space and the permissions of its directory.")
	}
	return nil
}
