package askpass

import (
	"net"
	"strings"
	"testing"
)

func TestQuestionsAreClassified(t *testing.T) {
	const unknown = "The authenticity of host '[lab]:22 ([10.0.0.7]:22)' can't be established.\n" +
		"ED25519 key fingerprint is SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA.\nThis key is not known by " +
		"any other names.\n" +
		"Are you sure you want to continue connecting (yes/no/[fingerprint])? "
	for _, c := range []struct {
		prompt, hint string
		want         Kind
		secret       bool
	}{
		{"me@lab's password: ", "", KindPassword, true},
		{"(me@lab) Password: ", "", KindPassword, true},
		{"(me@lab) 비밀번호: ", "", KindPassword, true},
		{"Enter passphrase for key '/home/me/.ssh/id_ed25519': ", "", KindPassphrase, true},
		{"Enter passphrase for /home/me/.ssh/id_rsa: ", "", KindPassphrase, true},
		{"(me@lab) Verification code: ", "", KindMFA, true},
		{"(me@lab) One-time password (OATH) for `me': ", "", KindMFA, true},
		{"(me@lab) Duo two-factor login for me\n\nPasscode or option (1-2): ", "", KindMFA, true},
		{"Enter PIN for ED25519-SK key /home/me/.ssh/id_sk: ", "", KindMFA, true},
		{unknown, "", KindHostKey, false},
		{"Please type 'yes', 'no' or the fingerprint: ", "", KindHostKey, false},
		{"Allow use of key me@laptop?", "confirm", KindConfirm, false},
		{"Confirm user presence for key ED25519-SK SHA256:x", "none", KindNotice, false},
		{"Username for 'https://git.example.com': ", "", KindUsername, false},
		{"Password for 'https://ada@git.example.com': ", "", KindPassword, true},
		{"", "", KindMFA, true},
	} {
		q := classify(askLine{Prompt: c.prompt, Hint: c.hint})
		if q.Kind != c.want || q.Secret != c.secret {
			t.Errorf("%q is %+v", c.prompt, q)
		}
	}
	q := classify(askLine{Prompt: unknown})
	if q.Host != "[lab]:22 ([10.0.0.7]:22)" || q.Fingerprint != "SHA256:"+strings.Repeat("A", 43) {
		t.Errorf("the host key's question is %+v", q)
	}
}

func FuzzClassify(f *testing.F) {
	f.Add("me@lab's password: ", "")
	f.Add("x\x1b[2J (yes/no)", "confirm")
	f.Fuzz(func(t *testing.T, prompt, hint string) {
		q := classify(askLine{Prompt: prompt, Hint: hint})
		if q.Kind == "" || strings.ContainsAny(q.Text, "\x1b\r\x00\u202e") {
			t.Errorf("%q is %+v", prompt, q)
		}
	})
}

func FuzzLines(f *testing.F) {
	f.Add([]byte(`{"prompt":"x"}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		near, far := net.Pipe()
		defer near.Close()
		go func() {
			_, _ = far.Write(data)
			_ = far.Close()
		}()
		var line askLine
		if err := readLine(near, &line); err != nil && strings.Contains(err.Error(), "prompt") {
			t.Errorf("the error repeats the content: %v", err)
		}
	})
}
