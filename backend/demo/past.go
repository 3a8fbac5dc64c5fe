package demo

import (
	"compress/gzip"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
	"slipway/gpu/sim"
)

// Recording is what an agent has stored in thirty days. The test of package run records it again with -update.
type Recording struct {
	End      time.Time // of the last session
	Sessions []RecordedSession
	Accounts map[string]json.RawMessage // by their keys in the store
}

// RecordedSession is a session that has ended.
type RecordedSession struct {
	Session session.Session
	Phases  []session.Phase
	Log     string
}

//go:embed past/*.json.gz
var recordings embed.FS

// AddPast stores the past of a machine, which ended yesterday, unless it has one. dir is the data folder of its agent,
// which is not running.
func AddPast(m Machine, dir string, books *store.Store) error {
	if known, err := books.Finished(); err != nil || known > 0 || m.Fresh {
		return err
	}
	past, err := pastOf(m, m.Time.Clock().Now())
	if err != nil {
		return fmt.Errorf("read the past of %s: %w", m.Name, err)
	}
	return books.Update(func(tx *store.Tx) error { return past.store(tx, filepath.Join(dir, "logs")) })
}

// pastOf returns the recording of a machine, moved to end on the day before now.
func pastOf(m Machine, now time.Time) (past Recording, err error) {
	packed, err := recordings.Open("past/" + m.Name + ".json.gz")
	if err != nil {
		return past, err
	}
	defer packed.Close() //nolint:errcheck // it was only read
	reader, err := gzip.NewReader(packed)
	if err != nil {
		return past, err
	}
	data, err := io.ReadAll(reader)
	if err != nil {
		return past, err
	}
	text, err := ownDevices(m, string(data))
	if err = errors.Join(err, json.Unmarshal(data, &past)); err != nil {
		return past, err
	}
	const day = 24 * time.Hour
	text = shift(text, now.Truncate(day).Sub(past.End.Truncate(day))-day)
	past = Recording{}
	return past, json.Unmarshal([]byte(text), &past)
}

// ownDevices replaces the devices of a recording, which has the seed 1, by those of a machine.
func ownDevices(m Machine, text string) (string, error) {
	recorded := Workstation(Options{Seed: 1})
	if m.Name == LabAgent {
		recorded = Lab(Options{Seed: 1})
	}
	theirs, errTheirs := recorded.devices()
	own, errOwn := m.devices()
	if err := errors.Join(errTheirs, errOwn); err != nil {
		return "", err
	}
	var ids []string
	for i, d := range theirs {
		ids = append(ids, string(d.UUID), string(own[i].UUID))
	}
	return strings.NewReplacer(ids...).Replace(text), nil
}

func (m Machine) devices() ([]gpu.Device, error) {
	config := sim.Config{Seed: m.Seed, Cards: m.Cards, Clock: m.Time.Moment()}
	return sim.Open(config).Inventory(context.Background())
}

// The times in a recording: in JSON and logs, and in the keys of accounts in seconds.
var (
	stamps = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	keys   = regexp.MustCompile(`/bucket/[a-z]+/\d{20}/`)
)

func shift(text string, by time.Duration) string {
	text = stamps.ReplaceAllStringFunc(text, func(stamp string) string {
		at, err := time.Parse(time.RFC3339Nano, stamp)
		if err != nil || at.IsZero() {
			return stamp
		}
		return at.Add(by).Format(time.RFC3339Nano)
	})
	return keys.ReplaceAllStringFunc(text, func(key string) string {
		at := len(key) - len("/") - 20
		seconds, err := strconv.ParseInt(key[at:len(key)-1], 10, 64)
		if err != nil {
			return key
		}
		return fmt.Sprintf("%s%020d/", key[:at], seconds+int64(by/time.Second))
	})
}

func (r Recording) store(tx *store.Tx, logs string) error {
	for _, one := range r.Sessions {
		dir := filepath.Join(logs, string(one.Session.ID))
		err := errors.Join(tx.Create(&one.Session, ""), os.MkdirAll(dir, 0o700))
		for _, phase := range one.Phases {
			err = errors.Join(err, tx.PutPhase(&phase))
		}
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, session.MainKernel+".log"), []byte(one.Log), 0o600))
		if err != nil {
			return err
		}
	}
	for key, value := range r.Accounts {
		if err := tx.PutAccount(key, value); err != nil {
			return err
		}
	}
	return nil
}
