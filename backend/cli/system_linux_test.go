package cli

import (
	"bytes"
	"io"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"slipway/backend/api"
)

// looking looks at a terminal whenever something is written.
type looking struct {
	bytes.Buffer
	look func()
}

func (l *looking) Write(p []byte) (int, error) {
	l.look()
	return l.Buffer.Write(p)
}

func TestWhatIsTypedIsHiddenBeforeASecretIsAskedFor(t *testing.T) {
	person, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer person.Close()
	defer terminal.Close()
	shown := func() bool {
		state, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		return state.Lflag&unix.ECHO != 0
	}
	for _, secret := range []bool{true, false} {
		asked := false
		p := &program{}
		p.Stdin, p.Stderr = terminal, &looking{look: func() {
			if asked {
				return
			}
			asked = true
			if shown() == secret {
				t.Errorf("secret %t: what is typed is shown: %t", secret, secret)
			}
			if _, err := io.WriteString(person, "typed at once\n"); err != nil {
				t.Error(err)
			}
		}}
		answer, err := p.ask(t.Context(), api.Prompt{Text: "Password:", Secret: secret})
		if err != nil || answer != "typed at once" || !asked {
			t.Errorf("secret %t: %q, %v", secret, answer, err)
		}
		if !shown() {
			t.Errorf("secret %t: the terminal is not as it was", secret)
		}
	}
}
