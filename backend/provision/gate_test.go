package provision

import (
	"context"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"slipway/backend/daemon"
	"slipway/backend/session"
	"slipway/tunnel/sshstdio"
)

// saying is a machine that prints one thing, whatever it is asked.
type saying struct {
	Remote
	text string
}

func (s saying) Run(context.Context, []string, io.Reader) (sshstdio.Result, error) {
	return sshstdio.Result{Stdout: []byte(s.text)}, nil
}

func TestEveryAnswerHasRules(t *testing.T) {
	for _, of := range []reflect.Type{
		reflect.TypeFor[session.PairCode](), reflect.TypeFor[session.KeyRotation](),
		reflect.TypeFor[daemon.Status](), reflect.TypeFor[daemon.Switched](),
		reflect.TypeFor[daemon.Uninstalled](),
	} {
		if _, err := gate().Weight(of); err != nil {
			t.Error(err)
		}
	}
}

// TestHostileMachineIsNotBelieved has a machine behind ssh print bad values.
func TestHostileMachineIsNotBelieved(t *testing.T) {
	const match = `x\nMatch exec \"touch /tmp/owned\"`
	for text, into := range map[string]any{
		`{"key":"` + match + `","version":"a"}`:    &daemon.Status{},
		`{"keeper":"\u001b]0;owned\u0007"}`:        &daemon.Status{},
		`{"started":"9999-01-01T00:00:00Z"}`:       &daemon.Status{},
		`{"code":"` + match + `","address":"a:1"}`: &session.PairCode{},
		`{"code":"123","address":"a:1\u0000"}`:     &session.PairCode{},
		`{"before":"k","key":"` + match + `"}`:     &session.KeyRotation{},
		`{"to":{"version":"1","pid":-1}}`:          &daemon.Switched{},
		`{"live":-1}`:                              &daemon.Uninstalled{},
	} {
		if err := Ask(t.Context(), saying{text: text}, "/x", into,
			"it"); session.CodeOf(err) != session.CodeAgentReply {
			t.Errorf("%s: %v", text, err)
		}
	}
	var status daemon.Status
	if err := Ask(t.Context(), saying{text: `{"key":"k","version":"a\u001b[2Jb"}`}, "/x", &status,
		"status"); err != nil || status.Version == "" || strings.ContainsFunc(status.Version, unicode.IsControl) {
		t.Errorf("%+v, %v", status, err)
	}
}
