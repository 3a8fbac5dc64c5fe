// Package cpace is the password-authenticated key exchange CPace of draft-irtf-cfrg-cpace, suite
// CPACE-RISTRETTO255-SHA512 in the setting with an initiator and a responder.
//
// Two parties that share a short password agree on a key. An eavesdropper learns nothing to test guesses against; a
// party to the exchange without the password tests one guess for each exchange. Scalars are multiplied and elements
// derived in constant time by the library. The exchange itself does not tell either side that the other knew the
// password: trust the other side only after [Result.Verify].
package cpace

import (
	"bytes"
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
	TagSize   = sha512.Size

	scalarSize = 32
	groupBits  = 252
)

const dsi = "CPaceRistretto255"

var (
	// ErrShare means that a share does not encode an element of the group, or encodes the neutral one, with which
	// everyone would know the key.
	ErrShare = errors.New("cpace: the other side's share is not valid")
	// ErrReflected means that a share is this side's own: the other side could pass the confirmation by returning the
	// tag too.
	ErrReflected = errors.New("cpace: the other side sent this side's own share back")
)

// Role is the side of a party in an exchange.
type Role int

// The roles; the two sides of one exchange have different ones.
const (
	Initiator Role = iota + 1
	Responder
)

// label is the role in a confirmation tag.
func (r Role) label() []byte {
	if r == Initiator {
		return []byte("initiator")
	}
	return []byte("responder")
}

// Input is the input of one side. Password, Channel and Session must be the same on both sides, or the keys differ.
// Session must be unique to the exchange. Associated is bound into the key and may differ; the other side must receive
// it.
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
	_, _ = rand.Read(raw)                     // never fails
	raw[scalarSize-1] &= 1<<(groupBits%8) - 1 // the draft's sampling: a uniform string of as many bits as the group has
	return start(role, input, raw)
}

func start(role Role, input Input, scalar []byte) (*Exchange, error) {
	s, err := reduce(scalar)
	if err != nil {
		return nil, err
	}
	base, err := generator(input)
	if err != nil {
		return nil, err
	}
	share := ristretto255.NewIdentityElement().ScalarMult(s, base)
	return &Exchange{
		role: role, session: slices.Clone(input.Session), scalar: s,
		share: share.Bytes(), own: slices.Clone(input.Associated),
	}, nil
}

// reduce reads a scalar of 252 bits, which may lie above the group's order only by a chance of about 2^-127.
func reduce(scalar []byte) (*ristretto255.Scalar, error) {
	wide := make([]byte, 64)
	copy(wide, scalar)
	return ristretto255.NewScalar().SetUniformBytes(wide)
}

// Share is sent to the other side, with the associated data.
func (e *Exchange) Share() []byte { return slices.Clone(e.share) }

// Finish gets the other side's share and associated data. It can be called once: a second share would be a second
// guess.
func (e *Exchange) Finish(share, associated []byte) (*Result, error) {
	if e.scalar == nil {
		return nil, errors.New("cpace: the exchange is already finished")
	}
	scalar := e.scalar
	e.scalar = nil
	if bytes.Equal(share, e.share) {
		return nil, ErrReflected
	}
	secret, err := multiply(scalar, share)
	if err != nil {
		return nil, err
	}
	mine, theirs := join(e.share, e.own), join(share, associated)
	first, second := mine, theirs
	if e.role == Responder {
		first, second = theirs, mine
	}
	key := sha512.Sum512(slices.Concat(join([]byte(dsi+"_ISK"), e.session, secret), first, second))
	mac := sha512.Sum512(slices.Concat([]byte("CPaceMac"), e.session, key[:]))
	return &Result{
		key:    key[:],
		own:    tag(mac[:], e.role, e.share, e.own),
		theirs: tag(mac[:], Initiator+Responder-e.role, share, associated),
	}, nil
}

// Result is the result of an exchange on one side. The key is the same on both sides if and only if their inputs agree.
type Result struct {
	key         []byte // the draft's ISK
	own, theirs []byte
}

// Tag proves this side's key to the other.
func (r *Result) Tag() []byte { return slices.Clone(r.own) }

// Verify reports whether tag is the other side's, which then has the same key.
func (r *Result) Verify(tag []byte) bool { return hmac.Equal(tag, r.theirs) }

// tag is the draft's confirmation, MAC(mac_key, lv_cat(Y, AD)), with the role of the side that sent Y and AD before
// them, so that one side's tag is never the other's, as the draft requires.
func tag(key []byte, role Role, share, associated []byte) []byte {
	mac := hmac.New(sha512.New, key)
	mac.Write(join(role.label(), share, associated))
	return mac.Sum(nil)
}

// multiply is the draft's scalar_mult_vfy with the check that follows it.
func multiply(scalar *ristretto255.Scalar, share []byte) ([]byte, error) {
	if len(share) != ShareSize {
		return nil, ErrShare
	}
	element, err := ristretto255.NewIdentityElement().SetCanonicalBytes(share)
	if err != nil {
		return nil, ErrShare
	}
	secret := ristretto255.NewIdentityElement().ScalarMult(scalar, element)
	if secret.Equal(ristretto255.NewIdentityElement()) == 1 {
		return nil, ErrShare
	}
	return secret.Bytes(), nil
}

func generator(input Input) (*ristretto255.Element, error) {
	hash := sha512.Sum512(generatorString(input))
	return ristretto255.NewIdentityElement().SetUniformBytes(hash[:])
}

// generatorString pads with zeros so that the password fills a hash block of its own.
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
