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
	equal("the generator", generator(inputA).Encode(nil), "222b6b195fe84b1652badb6f6a3ae3d24341e7306967f0b8115b40d5698c7e56")
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
	equal("the initiator's key", keyA, isk)
	equal("the responder's key", keyB, isk)
}

func TestTheDraftsScalarMultiplicationVectorsHold(t *testing.T) {
	s := ristretto255.NewScalar()
	if err := s.Decode(unhex(t, "7cd0e075fa7955ba52c02759a6c90dbbfc10e6d40aea8d283e407d88cf538a05")); err != nil {
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
	if got := join([]byte("1234"), []byte("5"), nil, []byte("678")); !bytes.Equal(got, unhex(t, "043132333401350003363738")) {
		t.Errorf("lv_cat is %x", got)
	}
	long := make([]byte, 128)
	if got := join(long); !bytes.Equal(got[:2], []byte{0x80, 0x01}) {
		t.Errorf("a length of 128 is %x", got[:2])
	}
}

func run(t *testing.T, a, b Input) (keyA, keyB []byte) {
	t.Helper()
	x, err := Start(Initiator, a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := Start(Responder, b)
	if err != nil {
		t.Fatal(err)
	}
	if keyA, err = x.Finish(y.Share(), b.Associated); err != nil {
		t.Fatal(err)
	}
	if keyB, err = y.Finish(x.Share(), a.Associated); err != nil {
		t.Fatal(err)
	}
	return keyA, keyB
}

func TestKeysAgreeOnlyWhenEverythingDoes(t *testing.T) {
	base := Input{Password: []byte("48217390"), Channel: []byte("c"), Session: []byte("s"), Associated: []byte("a")}
	if a, b := run(t, base, base); !bytes.Equal(a, b) {
		t.Error("equal inputs gave different keys")
	}
	if a, b := run(t, base, base); bytes.Equal(Tag(base.Session, a, []byte("x"), nil), Tag(base.Session, b, []byte("y"), nil)) {
		t.Error("the tags of two different messages are equal")
	}
	for name, change := range map[string]func(*Input){
		"password": func(i *Input) { i.Password = []byte("48217391") },
		"channel":  func(i *Input) { i.Channel = []byte("d") },
		"session":  func(i *Input) { i.Session = []byte("t") },
	} {
		other := base
		change(&other)
		if a, b := run(t, base, other); bytes.Equal(a, b) {
			t.Errorf("the keys are equal with another %s", name)
		}
	}
}

func TestChangedAssociatedDataChangesTheKey(t *testing.T) {
	input := Input{Password: []byte("p"), Associated: []byte("mine")}
	a, err := Start(Initiator, input)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Start(Responder, input)
	if err != nil {
		t.Fatal(err)
	}
	keyA, _ := a.Finish(b.Share(), []byte("mine"))
	keyB, _ := b.Finish(a.Share(), []byte("forged"))
	if bytes.Equal(keyA, keyB) {
		t.Error("forged associated data gave the same key")
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
	f.Add(yb, []byte("ADb"))
	f.Add([]byte{}, []byte{})
	f.Fuzz(func(t *testing.T, share, associated []byte) {
		a, err := Start(Initiator, Input{Password: []byte("p")})
		if err != nil {
			t.Fatal(err)
		}
		key, err := a.Finish(share, associated)
		if (err == nil) != (len(key) == KeySize) {
			t.Fatalf("a key of %d bytes with error %v", len(key), err)
		}
	})
}
