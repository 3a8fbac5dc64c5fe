package cpace

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/gtank/ristretto255"
)

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	out, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The vectors are those of draft-irtf-cfrg-cpace, appendix "Test vector for
// CPace using group ristretto255 and hash SHA-512".
func vector(t testing.TB) (a, b Input, ya, yb []byte) {
	shared := Input{
		Password: []byte("Password"),
		Channel:  []byte("\x0bA_initiator\x0bB_responder"),
		Session:  unhex(t, "7e4b4791d6a8ef019b936c79fb7f2c57"),
	}
	a, b = shared, shared
	a.Associated, b.Associated = []byte("ADa"), []byte("ADb")
	ya = unhex(t, "da3d23700a9e5699258aef94dc060dfda5ebb61f02a5ea77fad53f4ff0976d08")
	yb = unhex(t, "d2316b454718c35362d83d69df6320f38578ed5984651435e2949762d900b80d")
	return a, b, ya, yb
}

func TestTheDraftsVectorsHold(t *testing.T) {
	inputA, inputB, ya, yb := vector(t)
	equal := func(what string, got []byte, want string) {
		t.Helper()
		if !bytes.Equal(got, unhex(t, want)) {
			t.Errorf("%s is %x", what, got)
		}
	}
	if got := len(generatorString(inputA)); got != 170 {
		t.Errorf("the generator string has %d bytes, not 170", got)
	}
	base, err := generator(inputA)
	if err != nil {
		t.Fatal(err)
	}
	equal("the generator", base.Bytes(),
		"222b6b195fe84b1652badb6f6a3ae3d24341e7306967f0b8115b40d5698c7e56")
	a, err := start(Initiator, inputA, ya)
	if err != nil {
		t.Fatal(err)
	}
	b, err := start(Responder, inputB, yb)
	if err != nil {
		t.Fatal(err)
	}
	equal("Ya", a.Share(), "d6bac480f2c386c394efc7c47adb9925dcd2630b64f240c50f8d0eec482b9157")
	equal("Yb", b.Share(), "3ea7e0b19560d7c0b0f5734f63b955286dfa8232b5ebe63324e2d9e7433f7258")
	k, err := multiply(a.scalar, b.Share())
	if err != nil {
		t.Fatal(err)
	}
	equal("K", k, "80b69a8a76457ab6a4d7f887a4bf6b55a2f80ac19c333f917a05fc9887c8b40f")
	const isk = `b69effbf61b51d56401c0f65601abe428de8206feaaf0e32198896dc
		ae7b35cd2b38950a39dfd5d4a79164614c2984f7daa460b588c1e80c3fa2068af7900447`
	keyA, err := a.Finish(b.Share(), []byte("ADb"))
	if err != nil {
		t.Fatal(err)
	}
	keyB, err := b.Finish(a.Share(), []byte("ADa"))
	if err != nil {
		t.Fatal(err)
	}
	equal("the initiator's key", keyA.key, isk)
	equal("the responder's key", keyB.key, isk)
}

func TestTheDraftsScalarMultiplicationVectorsHold(t *testing.T) {
	s, err := ristretto255.NewScalar().SetCanonicalBytes(
		unhex(t, "7cd0e075fa7955ba52c02759a6c90dbbfc10e6d40aea8d283e407d88cf538a05"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := multiply(s, unhex(t, "2c3c6b8c4f3800e7aef6864025b4ed79bd599117e427c41bd47d93d654b4a51c"))
	if err != nil || hex.EncodeToString(got) != "7c13645fe790a468f62c39beb7388e541d8405d1ade69d1778c5fe3e7f6b600e" {
		t.Errorf("s·X is %x, %v", got, err)
	}
	for name, share := range map[string]string{
		"not an element":      "2b3c6b8c4f3800e7aef6864025b4ed79bd599117e427c41bd47d93d654b4a51c",
		"the neutral element": "0000000000000000000000000000000000000000000000000000000000000000",
		"not canonical":       "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"short":               "2c3c",
		"empty":               "",
	} {
		if _, err := multiply(s, unhex(t, share)); !errors.Is(err, ErrShare) {
			t.Errorf("%s: %v instead of ErrShare", name, err)
		}
	}
}

func TestLengthsArePrependedAsInTheDraft(t *testing.T) {
	if got := join([]byte("1234"), []byte("5"), nil, []byte("678")); !bytes.Equal(got,
		unhex(t, "043132333401350003363738")) {
		t.Errorf("lv_cat is %x", got)
	}
	long := make([]byte, 128)
	if got := join(long); !bytes.Equal(got[:2], []byte{0x80, 0x01}) {
		t.Errorf("a length of 128 is %x", got[:2])
	}
}

func begin(t *testing.T, role Role, input Input) *Exchange {
	t.Helper()
	e, err := Start(role, input)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func finish(t *testing.T, e *Exchange, share, associated []byte) *Result {
	t.Helper()
	r, err := e.Finish(share, associated)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// agree reports whether both sides have one key, and checks that the tags say so.
func agree(t *testing.T, a, b *Result) bool {
	t.Helper()
	same := bytes.Equal(a.key, b.key)
	if same != a.Verify(b.Tag()) || same != b.Verify(a.Tag()) {
		t.Errorf("the keys are equal: %v; the tags say %v and %v", same, a.Verify(b.Tag()), b.Verify(a.Tag()))
	}
	if a.Verify(a.Tag()) || b.Verify(b.Tag()) {
		t.Error("a side takes its own tag for the other's")
	}
	return same
}

func run(t *testing.T, a, b Input) bool {
	t.Helper()
	x, y := begin(t, Initiator, a), begin(t, Responder, b)
	return agree(t, finish(t, x, y.Share(), b.Associated), finish(t, y, x.Share(), a.Associated))
}

func TestKeysAgreeOnlyWhenEverythingDoes(t *testing.T) {
	base := Input{Password: []byte("48217390"), Channel: []byte("c"), Session: []byte("s"), Associated: []byte("a")}
	if !run(t, base, base) {
		t.Error("equal inputs gave different keys")
	}
	for name, change := range map[string]func(*Input){
		"password": func(i *Input) { i.Password = []byte("48217391") },
		"channel":  func(i *Input) { i.Channel = []byte("d") },
		"session":  func(i *Input) { i.Session = []byte("t") },
	} {
		other := base
		change(&other)
		if run(t, base, other) {
			t.Errorf("the keys are equal with another %s", name)
		}
	}
}

func TestChangedAssociatedDataChangesTheKey(t *testing.T) {
	input := Input{Password: []byte("p"), Associated: []byte("mine")}
	a, b := begin(t, Initiator, input), begin(t, Responder, input)
	if agree(t, finish(t, a, b.Share(), []byte("mine")), finish(t, b, a.Share(), []byte("forged"))) {
		t.Error("forged associated data gave the same key")
	}
}

// A side that is given its own messages back would otherwise compute a key and
// tags that verify, without anyone else knowing the password.
func TestOwnMessagesAreRefused(t *testing.T) {
	for _, role := range []Role{Initiator, Responder} {
		input := Input{Password: []byte("p"), Session: []byte("s"), Associated: []byte("a")}
		e := begin(t, role, input)
		for name, associated := range map[string][]byte{"the same data": input.Associated, "other data": []byte("b")} {
			if r, err := e.Finish(e.Share(), associated); !errors.Is(err, ErrReflected) || r != nil {
				t.Errorf("role %d, %s: %v, %v", role, name, r, err)
			}
			e = begin(t, role, input)
		}
	}
}

// Two sides of one role, with everything else right, do not agree: whoever
// passes the messages between two dialers gains nothing.
func TestTwoSidesOfOneRoleDoNotAgree(t *testing.T) {
	input := Input{Password: []byte("p"), Channel: []byte("c"), Session: []byte("s"), Associated: []byte("a")}
	for _, role := range []Role{Initiator, Responder} {
		a, b := begin(t, role, input), begin(t, role, input)
		if agree(t, finish(t, a, b.Share(), input.Associated), finish(t, b, a.Share(), input.Associated)) {
			t.Errorf("two sides of role %d agree", role)
		}
	}
}

// The role is in the tag: with the same key and the same message the tags of the
// two roles differ.
func TestATagStandsForOneRole(t *testing.T) {
	key, share := []byte("key"), make([]byte, ShareSize)
	if bytes.Equal(tag(key, Initiator, share, nil), tag(key, Responder, share, nil)) {
		t.Error("both roles have one tag")
	}
}

func TestOnlyTheWholeTagVerifies(t *testing.T) {
	input := Input{Password: []byte("p")}
	a, b := begin(t, Initiator, input), begin(t, Responder, input)
	x, y := finish(t, a, b.Share(), nil), finish(t, b, a.Share(), nil)
	good := y.Tag()
	if !x.Verify(good) || len(good) != TagSize {
		t.Fatal("the right tag does not verify")
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1 << (i % 8)
		if x.Verify(bad) || x.Verify(good[:i]) {
			t.Errorf("a tag that differs at byte %d, or ends there, verifies", i)
		}
	}
	if x.Verify(nil) || x.Verify(append(good, 0)) {
		t.Error("no tag, or one that is too long, verifies")
	}
}

// Ristretto has no small subgroup: the points of small order of the curve
// beneath it, and all encodings that are not canonical, must not be taken.
func TestPointsOutsideTheGroupAreRefused(t *testing.T) {
	for name, share := range map[string]string{
		"order 1":                   "0100000000000000000000000000000000000000000000000000000000000000",
		"order 2":                   "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"order 4":                   "0000000000000000000000000000000000000000000000000000000000000000",
		"order 4, other sign":       "0000000000000000000000000000000000000000000000000000000000000080",
		"order 8":                   "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
		"order 8, other sign":       "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
		"order 8, negative":         "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
		"order 8, negative, sign":   "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
		"order 1, not canonical":    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"order 4, not canonical":    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"a negative field element":  "0100000000000000000000000000000000000000000000000000000000000000",
		"the largest number":        "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"the order of the group":    "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010",
		"no square":                 "26948d35ca62e643e26a83177332e6b6afeb9d08e4268b650f1f5bbd8d81d371",
		"a share and another byte":  "2c3c6b8c4f3800e7aef6864025b4ed79bd599117e427c41bd47d93d654b4a51c00",
		"a share without its end":   "2c3c6b8c4f3800e7aef6864025b4ed79bd599117e427c41bd47d93d654b4a5",
		"a share, its high bit set": "2c3c6b8c4f3800e7aef6864025b4ed79bd599117e427c41bd47d93d654b4a59c",
		"two shares after one other": strings.Repeat("2c3c6b8c4f3800e7aef6864025b4ed79bd599117e427c41bd47d93d654b4a51c",
			2),
	} {
		for _, role := range []Role{Initiator, Responder} {
			e := begin(t, role, Input{Password: []byte("p")})
			if r, err := e.Finish(unhex(t, share), nil); !errors.Is(err, ErrShare) || r != nil {
				t.Errorf("%s: %v, %v", name, r, err)
			}
		}
	}
}

func TestAnExchangeAllowsOneGuess(t *testing.T) {
	a, err := Start(Initiator, Input{Password: []byte("p")})
	if err != nil {
		t.Fatal(err)
	}
	b, err := Start(Responder, Input{Password: []byte("p")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Finish(make([]byte, ShareSize), nil); !errors.Is(err, ErrShare) {
		t.Fatalf("the neutral element gave %v", err)
	}
	if _, err := a.Finish(b.Share(), nil); err == nil {
		t.Error("a second share was accepted")
	}
}

func FuzzFinish(f *testing.F) {
	_, _, _, yb := vector(f)
	f.Add(yb, []byte("ADb"), []byte{})
	f.Add([]byte{}, []byte{}, []byte{})
	f.Add(bytes.Repeat([]byte{0xff}, ShareSize), []byte("ADb"), make([]byte, TagSize))
	f.Fuzz(func(t *testing.T, share, associated, tag []byte) {
		for _, role := range []Role{Initiator, Responder} {
			e, err := Start(role, Input{Password: []byte("p"), Session: []byte("s")})
			if err != nil {
				t.Fatal(err)
			}
			r, err := e.Finish(share, associated)
			switch {
			case (err == nil) != (r != nil):
				t.Fatalf("a result %v with error %v", r, err)
			case err == nil && (r.Verify(tag) || r.Verify(r.Tag())):
				t.Fatal("a tag that nobody could compute verifies")
			}
		}
	})
}
