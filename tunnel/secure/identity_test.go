package secure

import (
	"crypto/ed25519"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestAnIdentityIsMadeOnceAndKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "client.key")
	var wg sync.WaitGroup
	found := make([]string, 8)
	for n := range found {
		wg.Go(func() {
			i, err := OpenIdentity(path)
			if err != nil {
				t.Error(err)
				return
			}
			found[n] = i.Fingerprint()
		})
	}
	wg.Wait()
	for _, fingerprint := range found {
		if fingerprint != found[0] || !ValidFingerprint(fingerprint) {
			t.Errorf("the fingerprints are %v", found)
			break
		}
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenIdentity(path); err == nil {
		t.Error("a key that others may read was accepted")
	}
}

func TestAnIdentityIsReadAsWritten(t *testing.T) {
	i := newIdentity(t)
	for range 2 {
		var err error
		if i, err = i.Rotate(); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "key")
	if err := i.Save(path); err != nil {
		t.Fatal(err)
	}
	again, err := OpenIdentity(path)
	if err != nil {
		t.Fatal(err)
	}
	if again.Fingerprint() != i.Fingerprint() || len(again.successions) != 2 {
		t.Errorf("it is %v with %d old keys", again, len(again.successions))
	}
	data, err := i.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for name, damaged := range map[string]string{
		"another key":     strings.Replace(string(data), `"seed": "`, `"seed": "AA`, 1),
		"another version": strings.Replace(string(data), `"version": 1`, `"version": 2`, 1),
		"cut off":         string(data[:len(data)/2]),
		"empty":           "",
		"too long":        strings.Repeat(" ", maxIdentityFile) + string(data),
	} {
		_, err := ParseIdentity([]byte(damaged))
		if err == nil {
			t.Errorf("%s was accepted", name)
		} else if strings.Contains(err.Error(), "seed") || len(err.Error()) > 200 {
			t.Errorf("%s: the error repeats the content: %v", name, err)
		}
	}
}

func TestAnIdentityIsNotPrinted(t *testing.T) {
	i := newIdentity(t)
	seed := fmt.Sprintf("%x", i.key.Seed())
	for _, format := range []string{"%v", "%+v", "%s", "%#v"} {
		if text := fmt.Sprintf(format, i); strings.Contains(text, seed) || !strings.Contains(text, i.Fingerprint()) {
			t.Errorf("%s prints %s", format, text)
		}
	}
}

func TestARotatedAgentIsAcceptedAndExpectedFromThenOn(t *testing.T) {
	a, laptop := startAgent(t, nil), newIdentity(t)
	a.pairWith(t, laptop)
	var moved []string
	d := a.dialer(t, laptop, func(c *DialConfig) {
		c.Moved = func(key string) error { moved = append(moved, key); return nil }
	})
	strict := a.dialer(t, laptop, nil)
	old, oldCarrier := a.connect(t, d)
	next, err := a.identity.Rotate()
	if err != nil {
		t.Fatal(err)
	}
	if next, err = next.Rotate(); err != nil { // twice while the laptop was away
		t.Fatal(err)
	}
	a.SetIdentity(next)
	conn, carrier := a.connect(t, d)
	exchange(t, conn, carrier)
	exchange(t, old, oldCarrier)
	a.connect(t, d)
	if len(moved) != 1 || moved[0] != next.Fingerprint() {
		t.Errorf("it moved to %v", moved)
	}
	_, err = strict.Dial(soon(t), false)
	wantCode(t, err, "agent_connect_host-key")
	a.SetIdentity(a.identity) // whoever stole the old key
	_, err = d.Dial(soon(t), false)
	wantCode(t, err, "agent_connect_host-key")
	refuse := errors.New("the disk is full")
	careful := a.dialer(t, laptop, func(c *DialConfig) { c.Moved = func(string) error { return refuse } })
	a.SetIdentity(next)
	if _, err := careful.Dial(soon(t), false); !errors.Is(err, refuse) {
		t.Errorf("a key that cannot be kept gave %v", err)
	}
}

func TestARotatedClientIsListedUnderItsNewKey(t *testing.T) {
	a, laptop := startAgent(t, nil), newIdentity(t)
	a.pairWith(t, laptop)
	_, before := a.connect(t, a.dialer(t, laptop, nil))
	next, err := laptop.Rotate()
	if err != nil {
		t.Fatal(err)
	}
	conn, carrier := a.connect(t, a.dialer(t, next, nil))
	exchange(t, conn, carrier)
	if list := a.clients.List(); len(list) != 1 || list[0].Key != next.Fingerprint() || list[0].Name != "laptop" ||
		carrier.Peer.Key != next.Fingerprint() {
		t.Errorf("the list is %+v", list)
	}
	if _, err := before.Read(make([]byte, 1)); err == nil {
		t.Error("the old key's connection lives on")
	}
	stolen, err := laptop.Rotate() // by whoever stole the old key
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []*Identity{laptop, stolen} {
		conn, err := a.dialer(t, i, nil).Dial(soon(t), false)
		if err != nil {
			t.Fatal(err)
		}
		_, err = conn.Read(make([]byte, 1))
		wantCode(t, err, "agent_connect_not-paired")
		_ = conn.Close()
	}
	if err := a.clients.Revoke(next.Fingerprint()); err != nil {
		t.Fatal(err)
	}
	last, err := next.Rotate()
	if err != nil {
		t.Fatal(err)
	}
	conn, err = a.dialer(t, last, nil).Dial(soon(t), false)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = conn.Read(make([]byte, 1))
	wantCode(t, err, "agent_connect_not-paired")
}

func TestForgedSuccessionsAreNone(t *testing.T) {
	old, next := newIdentity(t), newIdentity(t)
	good := succeed(old.key, next.key)
	parse := func(i *Identity) *x509.Certificate {
		cert, err := x509.ParseCertificate(i.certificate.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		return cert
	}
	with := func(chain ...succession) []string {
		i, err := makeIdentity(next.key, chain)
		if err != nil {
			t.Fatal(err)
		}
		return predecessors(parse(i))
	}
	if got := with(good); len(got) != 1 || got[0] != old.Fingerprint() {
		t.Fatalf("a good one gives %v", got)
	}
	forged := good
	forged.signature = ed25519.Sign(next.key, good.signed())
	for name, chain := range map[string][]succession{
		"signed by the new key": {forged},
		"for another key":       {succeed(old.key, newIdentity(t).key)},
		"a gap":                 {succeed(newIdentity(t).key, newIdentity(t).key), good},
		"too many":              append(make([]succession, maxSuccessions), good),
	} {
		for i := range chain {
			if chain[i].old == nil {
				chain[i] = good
			}
		}
		if got := with(chain...); got != nil {
			t.Errorf("%s gives %v", name, got)
		}
	}
}

func TestOnlyTheLastKeysAreRemembered(t *testing.T) {
	i := newIdentity(t)
	for range maxSuccessions + 3 {
		var err error
		if i, err = i.Rotate(); err != nil {
			t.Fatal(err)
		}
	}
	cert, err := x509.ParseCertificate(i.certificate.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	if n := len(predecessors(cert)); n != maxSuccessions {
		t.Errorf("%d are", n)
	}
}

func FuzzParseIdentity(f *testing.F) {
	i, err := NewIdentity()
	if err != nil {
		f.Fatal(err)
	}
	if i, err = i.Rotate(); err != nil {
		f.Fatal(err)
	}
	data, err := i.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		i, err := ParseIdentity(data)
		if err == nil && !ValidFingerprint(i.Fingerprint()) {
			t.Error("an identity without a fingerprint")
		}
	})
}

func FuzzPredecessors(f *testing.F) {
	i, err := NewIdentity()
	if err != nil {
		f.Fatal(err)
	}
	if i, err = i.Rotate(); err != nil {
		f.Fatal(err)
	}
	cert, err := x509.ParseCertificate(i.certificate.Certificate[0])
	if err != nil {
		f.Fatal(err)
	}
	f.Add(encodeSuccessions(i.successions))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, value []byte) {
		forged := *cert
		forged.Extensions = nil
		for _, e := range cert.Extensions {
			if e.Id.Equal(successionOID) {
				e.Value = value
			}
			forged.Extensions = append(forged.Extensions, e)
		}
		if got := predecessors(&forged); got != nil && string(value) != string(encodeSuccessions(i.successions)) {
			t.Errorf("%x gives %v", value, got)
		}
	})
}
