// Package cpace is the password-authenticated key exchange CPace of
// draft-irtf-cfrg-cpace, suite CPACE-RISTRETTO255-SHA512 in the setting with an
// initiator and a responder.
//
// Two parties that share a short password agree on a key. Whoever listens
// learns nothing that a guess could be tested against; whoever takes part
// without the password tests one guess for each exchange. Scalars are multiplied
// and elements derived in constant time by the library. The exchange itself
// does not tell either side that the other knew the password: confirm the key
// with [Tag] before trusting it.
package cpace

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha512"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/gtank/ristretto255"
)

// Sizes in bytes.
const (
	ShareSize = 32
	KeySize   = sha512.Size
	TagSize   = sha512.Size

	scalarSize = 32
	groupBits  = 252
)

const dsi = "CPaceRistretto255"

// ErrShare is returned for a share that is no element of the group, or the
// neutral one, which would make the key known to everybody.
var ErrShare = errors.New("cpace: the other side's share is not valid")

// Role says which side of an exchange a party is.
type Role int

// The roles; the two sides of one exchange have different ones.
const (
	Initiator Role = iota + 1
	Responder
)

// Input is what one side puts in. Password, Channel and Session must be the same
// on both sides, or the keys differ. Session must not be used for two
// exchanges. Associated is bound into the key and may differ; the other side
// must receive it.
type Input struct {
	Password   []byte
	Channel    []byte
	Session    []byte
	Associated []byte
}

// Exchange is one side of one exchange.
type Exchange struct {
	role    Role
	session []byte
	scalar  *ristretto255.Scalar // nil once it was used
	share   []byte
	own     []byte // associated data
}

// Start begins an exchange.
func Start(role Role, input Input) (*Exchange, error) {
	if role != Initiator && role != Responder {
		return nil, fmt.Errorf("cpace: %d is neither initiator nor responder", role)
	}
	raw := make([]byte, scalarSize)
	if _, err := rand.Read(raw); err != nil {
		return nil, err
	}
	// The draft's sampling: a uniform string of as many bits as the group has.
	raw[scalarSize-1] &= 1<<(groupBits%8) - 1
	return start(role, input, raw)
}

func start(role Role, input Input, scalar []byte) (*Exchange, error) {
	s := ristretto255.NewScalar()
	if err := s.Decode(reduce(scalar)); err != nil {
		return nil, err
	}
	share := ristretto255.NewElement().ScalarMult(s, generator(input))
	return &Exchange{
		role: role, session: slices.Clone(input.Session), scalar: s,
		share: share.Encode(nil), own: slices.Clone(input.Associated),
	}, nil
}

// reduce gives the canonical encoding of a scalar of 252 bits, which may lie
// above the group's order only by a chance of about 2^-127.
func reduce(scalar []byte) []byte {
	wide := make([]byte, 64)
	copy(wide, scalar)
	return ristretto255.NewScalar().FromUniformBytes(wide).Encode(nil)
}

// Share is what the other side must receive, with the associated data.
func (e *Exchange) Share() []byte { return slices.Clone(e.share) }

// Finish returns the key, which is the same on both sides if and only if
// everything that had to agree does. It can be called once: a second share
// tried on the same exchange would be a second guess.
func (e *Exchange) Finish(share, associated []byte) ([]byte, error) {
	if e.scalar == nil {
		return nil, errors.New("cpace: the exchange is already finished")
	}
	scalar := e.scalar
	e.scalar = nil
	secret, err := multiply(scalar, share)
	if err != nil {
		return nil, err
	}
	mine, theirs := join(e.share, e.own), join(share, associated)
	if e.role == Responder {
		mine, theirs = theirs, mine
	}
	h := sha512.New()
	h.Write(join([]byte(dsi+"_ISK"), e.session, secret))
	h.Write(mine)
	h.Write(theirs)
	return h.Sum(nil), nil
}

// multiply is the draft's scalar_mult_vfy with the check that follows it.
func multiply(scalar *ristretto255.Scalar, share []byte) ([]byte, error) {
	if len(share) != ShareSize {
		return nil, ErrShare
	}
	element := ristretto255.NewElement()
	if err := element.Decode(share); err != nil {
		return nil, ErrShare
	}
	secret := ristretto255.NewElement().ScalarMult(scalar, element)
	if secret.Equal(ristretto255.NewElement().Zero()) == 1 {
		return nil, ErrShare
	}
	return secret.Encode(nil), nil
}

// Tag confirms a key: the side that sent share and associated sends it, and the
// other compares it with what it makes itself, by [crypto/hmac.Equal].
func Tag(session, key, share, associated []byte) []byte {
	derived := sha512.New()
	derived.Write([]byte("CPaceMac"))
	derived.Write(session)
	derived.Write(key)
	mac := hmac.New(sha512.New, derived.Sum(nil))
	mac.Write(join(share, associated))
	return mac.Sum(nil)
}

func generator(input Input) *ristretto255.Element {
	hash := sha512.Sum512(generatorString(input))
	return ristretto255.NewElement().FromUniformBytes(hash[:])
}

// generatorString pads with zeros so that the password fills a hash block of
// its own.
func generatorString(input Input) []byte {
	padding := sha512.BlockSize - 1 - len(join(input.Password)) - len(join([]byte(dsi)))
	return join([]byte(dsi), input.Password, make([]byte, max(0, padding)), input.Channel, input.Session)
}

// join is the draft's lv_cat: each part behind its length in LEB128.
func join(parts ...[]byte) []byte {
	var out []byte
	for _, part := range parts {
		out = binary.AppendUvarint(out, uint64(len(part)))
		out = append(out, part...)
	}
	return out
}
