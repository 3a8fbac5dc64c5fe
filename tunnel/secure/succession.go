package secure

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/asn1"
	"slices"
)

// succession is the old key's word that the new key follows it. The new key
// need not sign: a connection proves that its owner has it.
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

// successionOID marks the extension of a certificate in which successions
// travel, oldest first. It is under the arc for UUIDs (ITU-T X.667), where
// nobody needs to be asked; only the 32 low bits of the UUID are kept, which
// every ASN.1 library can hold.
var successionOID = asn1.ObjectIdentifier{2, 25, 1936482679}

func succeed(old, next ed25519.PrivateKey) succession {
	s := succession{old: old.Public().(ed25519.PublicKey), next: next.Public().(ed25519.PublicKey)}
	s.signature = ed25519.Sign(old, s.signed())
	return s
}

func (s succession) signed() []byte {
	return slices.Concat([]byte(successionContext), s.old, s.next)
}

func (s succession) holds() bool { return ed25519.Verify(s.old, s.signed(), s.signature) }

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

// chainHolds reports whether each key of a chain signed the following one and
// the last one is final.
func chainHolds(chain []succession, final ed25519.PublicKey) bool {
	for i, s := range chain {
		next := final
		if i+1 < len(chain) {
			next = chain[i+1].old
		}
		if !s.next.Equal(next) || !s.holds() {
			return false
		}
	}
	return true
}

// predecessors returns the fingerprints of the keys whose successor a
// certificate's key proves to be, youngest first, none where a signature is
// wrong. The key must be ed25519.
func predecessors(cert *x509.Certificate) []string {
	final, ok := cert.PublicKey.(ed25519.PublicKey)
	if !ok {
		return nil
	}
	for _, extension := range cert.Extensions {
		if !extension.Id.Equal(successionOID) {
			continue
		}
		n := len(extension.Value) / successionSize
		if len(extension.Value)%successionSize != 0 || n == 0 || n > maxSuccessions {
			return nil
		}
		var chain []succession
		for raw := range slices.Chunk(extension.Value, successionSize) {
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
	return nil
}
