package secure

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/atomicwriter"
)

// Identity is the key of one computer. It is immutable: [Identity.Rotate] makes another. A peer that knew the old key
// accepts the new one because the old key signed it; those signatures travel in the certificate.
type Identity struct {
	key         ed25519.PrivateKey
	successions []succession
	certificate tls.Certificate
}

// NewIdentity makes an identity with a new key.
func NewIdentity() (*Identity, error) { return makeIdentity(newKey(), nil) }

func newKey() ed25519.PrivateKey {
	_, key, _ := ed25519.GenerateKey(nil) // cannot fail
	return key
}

func makeIdentity(key ed25519.PrivateKey, successions []succession) (*Identity, error) {
	i := &Identity{key: key, successions: successions}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "slipway"},
		// Nobody looks at the dates. The last one is RFC 5280's for "never".
		NotBefore: time.Unix(0, 0),
		NotAfter:  time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
	}
	if len(successions) > 0 {
		template.ExtraExtensions = []pkix.Extension{{Id: successionOID, Value: encodeSuccessions(successions)}}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("secure: make certificate: %w", err)
	}
	i.certificate = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	return i, nil
}

// Fingerprint names the identity's public key, see [FingerprintOf].
func (i *Identity) Fingerprint() string {
	return FingerprintOf(i.key.Public().(ed25519.PublicKey))
}

// Rotate makes an identity with a new key that the old one has signed.
func (i *Identity) Rotate() (*Identity, error) {
	key := newKey()
	chain := append(slices.Clone(i.successions), succeed(i.key, key))
	return makeIdentity(key, chain[max(0, len(chain)-maxSuccessions):])
}

// FingerprintOf is the name of a public key everywhere in Slipway: SHA-256 of its SubjectPublicKeyInfo (RFC 5280) in
// base32, lower case, 52 characters.
func FingerprintOf(key ed25519.PublicKey) string {
	der, _ := x509.MarshalPKIXPublicKey(key) // fails only for other types of keys
	return fingerprintSPKI(der)
}

var fingerprintEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

func fingerprintSPKI(der []byte) string {
	sum := sha256.Sum256(der)
	return fingerprintEncoding.EncodeToString(sum[:])
}

// ValidFingerprint reports whether text has the form of a fingerprint.
func ValidFingerprint(text string) bool {
	sum, err := fingerprintEncoding.DecodeString(text)
	return err == nil && len(sum) == sha256.Size && fingerprintEncoding.EncodeToString(sum) == text
}

// identityFile is the form of an identity on disk.
type identityFile struct {
	Version     int      `json:"version"`
	Seed        string   `json:"seed"`                  // ed25519, base64
	Successions []string `json:"successions,omitempty"` // base64, oldest first
}

const (
	identityVersion = 1
	maxIdentityFile = 16 << 10
)

// Marshal returns the identity with its private key, as [ParseIdentity] reads it.
func (i *Identity) Marshal() ([]byte, error) {
	file := identityFile{Version: identityVersion, Seed: base64.StdEncoding.EncodeToString(i.key.Seed())}
	for _, s := range i.successions {
		file.Successions = append(file.Successions, base64.StdEncoding.EncodeToString(s.encode()))
	}
	return json.MarshalIndent(file, "", "  ")
}

// ParseIdentity reads what Marshal wrote. Its errors do not quote the content.
func ParseIdentity(data []byte) (*Identity, error) {
	if len(data) > maxIdentityFile {
		return nil, errors.New("secure: the identity is too long")
	}
	var file identityFile
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, errors.New("secure: the identity is not readable")
	}
	if file.Version != identityVersion {
		return nil, fmt.Errorf("secure: the identity has version %d, not %d", file.Version, identityVersion)
	}
	seed, err := base64.StdEncoding.DecodeString(file.Seed)
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, errors.New("secure: the identity holds no key")
	}
	if len(file.Successions) > maxSuccessions {
		return nil, errors.New("secure: the identity holds too many old keys")
	}
	var chain []succession
	for _, text := range file.Successions {
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(raw) != successionSize {
			return nil, errors.New("secure: the identity holds an unreadable old key")
		}
		chain = append(chain, decodeSuccession(raw))
	}
	key := ed25519.NewKeyFromSeed(seed)
	if len(chain) > 0 && !chainHolds(chain, key.Public().(ed25519.PublicKey)) {
		return nil, errors.New("secure: the identity's old keys do not lead to its key")
	}
	return makeIdentity(key, chain)
}

// OpenIdentity reads the identity in a file, and makes both where there is no file. It refuses a file that others may
// read.
func OpenIdentity(path string) (*Identity, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return createIdentity(path)
	}
	if err != nil {
		return nil, err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("secure: others may read the key in %s (its mode is %04o); make it 0600 or remove it",
			path, info.Mode().Perm())
	}
	data, err := readLimited(path, maxIdentityFile)
	if err != nil {
		return nil, err
	}
	return ParseIdentity(data)
}

func createIdentity(path string) (*Identity, error) {
	i, err := NewIdentity()
	if err != nil {
		return nil, err
	}
	data, err := i.Marshal()
	if err != nil {
		return nil, err
	}
	err = createFile(path, data)
	if errors.Is(err, fs.ErrExist) { // of another program that started at the same time
		return OpenIdentity(path)
	}
	return i, err
}

// Save atomically writes the identity to a file that only its owner may read.
func (i *Identity) Save(path string) error {
	data, err := i.Marshal()
	if err != nil {
		return err
	}
	return atomicwriter.WriteFile(path, data, 0o600)
}

// String and GoString keep the private key out of logs.
func (i *Identity) String() string   { return "identity " + i.Fingerprint() }
func (i *Identity) GoString() string { return i.String() }

// ShortFingerprint is the beginning of a fingerprint, as a reminder, not to compare.
func ShortFingerprint(fingerprint string) string {
	return strings.ToUpper(fingerprint[:min(8, len(fingerprint))])
}

func readLimited(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("secure: %s is longer than %d bytes", path, limit)
	}
	return data, nil
}

// createFile atomically creates a file with mode 0600. It fails with fs.ErrExist if there is one.
func createFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	temporary := path + "." + rand.Text()
	if err := atomicwriter.WriteFile(temporary, content, 0o600); err != nil {
		return err
	}
	err := os.Link(temporary, path)
	if err != nil && !errors.Is(err, fs.ErrExist) { // a file system without links: only this program may race
		if _, missing := os.Lstat(path); missing != nil {
			return os.Rename(temporary, path)
		}
		err = fs.ErrExist
	}
	return errors.Join(err, os.Remove(temporary))
}

// succession is the old key's signature that the next key replaces it. That one need not sign: a connection proves that
// its owner has it.
type succession struct {
	old, next ed25519.PublicKey
	signature []byte
}

const (
	successionSize    = 2*ed25519.PublicKeySize + ed25519.SignatureSize
	successionContext = "slipway key succession v1\x00"
	// maxSuccessions is how many keys ago a peer may last have been seen.
	maxSuccessions = 8
)

// successionOID is the certificate extension with the successions, oldest first. It is under the arc for UUIDs (ITU-T
// X.667), which need no registration, with only the 32 low bits of the UUID, which every ASN.1 library supports.
var successionOID = asn1.ObjectIdentifier{2, 25, 1936482679}

func succeed(old, next ed25519.PrivateKey) succession {
	s := succession{old: old.Public().(ed25519.PublicKey), next: next.Public().(ed25519.PublicKey)}
	s.signature = ed25519.Sign(old, s.signed())
	return s
}

func (s succession) signed() []byte { return slices.Concat([]byte(successionContext), s.old, s.next) }
func (s succession) encode() []byte { return slices.Concat(s.old, s.next, s.signature) }

// decodeSuccession splits what encode joined; raw has successionSize bytes.
func decodeSuccession(raw []byte) succession {
	key := ed25519.PublicKeySize
	raw = slices.Clone(raw)
	return succession{old: raw[:key], next: raw[key : 2*key], signature: raw[2*key:]}
}

func encodeSuccessions(chain []succession) []byte {
	var out []byte
	for _, s := range chain {
		out = append(out, s.encode()...)
	}
	return out
}

// chainHolds reports whether each key of a chain signed the next one and the last one is final.
func chainHolds(chain []succession, final ed25519.PublicKey) bool {
	for i, s := range chain {
		next := final
		if i+1 < len(chain) {
			next = chain[i+1].old
		}
		if !s.next.Equal(next) || !ed25519.Verify(s.old, s.signed(), s.signature) {
			return false
		}
	}
	return true
}

// predecessors returns the fingerprints of the keys that a certificate's key provably replaces, youngest first, none if
// a signature is wrong. The key must be ed25519.
func predecessors(cert *x509.Certificate) []string {
	final, ok := cert.PublicKey.(ed25519.PublicKey)
	at := slices.IndexFunc(cert.Extensions, func(e pkix.Extension) bool { return e.Id.Equal(successionOID) })
	if !ok || at < 0 {
		return nil
	}
	encoded := cert.Extensions[at].Value
	if len(encoded) == 0 || len(encoded)%successionSize != 0 || len(encoded) > maxSuccessions*successionSize {
		return nil
	}
	var chain []succession
	for raw := range slices.Chunk(encoded, successionSize) {
		chain = append(chain, decodeSuccession(raw))
	}
	if !chainHolds(chain, final) {
		return nil
	}
	var out []string
	for _, s := range slices.Backward(chain) {
		out = append(out, FingerprintOf(s.old))
	}
	return out
}
