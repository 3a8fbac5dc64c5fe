package secure

import (
	"crypto/rand"
	"fmt"
	"math/big"
	"strings"

	"slipway/tunnel"
)

// A code has two digits that say which offer it belongs to, and eight that are
// secret: "42-4821-7390". Digits are read, heard and typed without mistakes in
// every language and on every keyboard. With at most maxFailures guesses for an
// offer, guessing succeeds once in twenty million offers.
const (
	plateDigits  = 2
	secretDigits = 8
	plates       = 90 // 10 to 99
)

// code is what a person carries from the agent to the client.
type code struct {
	plate  string
	secret string
}

func randomDigits(below, from int64, width int) (string, error) {
	n, err := rand.Int(rand.Reader, big.NewInt(below))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%0*d", width, n.Int64()+from), nil
}

func newSecret() (string, error) { return randomDigits(100_000_000, 0, secretDigits) }

func newPlate() (string, error) { return randomDigits(plates, 10, plateDigits) }

// String is the code as it is shown.
func (c code) String() string {
	return c.plate + "-" + c.secret[:secretDigits/2] + "-" + c.secret[secretDigits/2:]
}

// parseCode reads a code as people type it. Its error does not repeat it.
func parseCode(text string) (code, error) {
	digits := strings.Map(func(r rune) rune {
		switch {
		case r >= '0' && r <= '9':
			return r
		case r >= '０' && r <= '９': // as an input method for East Asian scripts may give them
			return r - '０' + '0'
		case strings.ContainsRune(" -–—.\t\u00a0", r):
			return -1
		}
		return 'x'
	}, strings.TrimSpace(text))
	if len(digits) != plateDigits+secretDigits || strings.Contains(digits, "x") {
		return code{}, &tunnel.Fault{Code: tunnel.CodePairCode, Message: "A pairing code has ten digits.",
			Hint: "Enter it as the agent's machine shows it, for example 42-4821-7390."}
	}
	return code{digits[:plateDigits], digits[plateDigits:]}, nil
}
