package sshstdio

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"time"
)

// askpassVariable names the socket of the process that asks. It is no secret.
const askpassVariable = "SLIPWAY_ASKPASS"

// AskpassMain is the whole program when ssh has started this executable to ask a
// question, which is when handled is true: the caller then exits with the
// returned code and does nothing else. args are without the program's name.
func AskpassMain(args []string, env func(string) string, stdout, stderr io.Writer) (exit int, handled bool) {
	socket := env(askpassVariable)
	if socket == "" || len(args) != 1 {
		return 0, false // ssh gives one argument, the question
	}
	reply, err := askOverSocket(socket, askLine{Prompt: args[0], Hint: env("SSH_ASKPASS_PROMPT")})
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "slipway: cannot ask:", err)
		return 1, true
	case reply.Refused:
		return 1, true
	case env("SSH_ASKPASS_PROMPT") == "confirm" && reply.Answer != "yes":
		return 1, true
	}
	fmt.Fprintln(stdout, reply.Answer)
	return 0, true
}

func askOverSocket(socket string, line askLine) (answerLine, error) {
	conn, err := net.DialTimeout("unix", socket, lineTimeout)
	if err != nil {
		return answerLine{}, err
	}
	defer conn.Close()
	if len(line.Prompt) > maxLine/8 {
		line.Prompt = line.Prompt[:maxLine/8] // each byte may take six in JSON
	}
	if err := writeLine(conn, line); err != nil {
		return answerLine{}, err
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return answerLine{}, err
	}
	data, err := bufio.NewReader(io.LimitReader(conn, maxLine)).ReadBytes('\n')
	if err != nil {
		return answerLine{}, err
	}
	var reply answerLine
	err = json.Unmarshal(data, &reply)
	return reply, err
}

// What ssh asks is in English whatever the language of the system; what a
// server's PAM modules ask is not, and counts as a second factor unless it
// speaks of a password.
var (
	askedHostKey    = regexp.MustCompile(`The authenticity of host '([^']{1,400})' can't be established`)
	askedFor        = regexp.MustCompile(`(?i)\(yes/no(/\[fingerprint\])?\)\?|please type 'yes'`)
	keyFingerprint  = regexp.MustCompile(`\b(SHA256:[A-Za-z0-9+/]{43}|MD5(:[0-9a-f]{2}){16})`)
	askedPassphrase = regexp.MustCompile(`(?i)^(enter )?(passphrase|password) for ('|"|\S*key|\S*/)|passphrase`)
	askedPassword   = regexp.MustCompile(
		`(?i)password|passwort|mot de passe|contraseña|senha|пароль|パスワード|비밀번호|密码|密碼|암호`)
	askedFactor = regexp.MustCompile(`(?i)one-time|otp|token|verification|passcode|second factor|2fa|\bcode\b`)
)

// classify reads a question of ssh.
func classify(line askLine) Question {
	q := Question{Text: printable(line.Prompt), Kind: KindMFA, Secret: true}
	hostKey := askedHostKey.FindStringSubmatch(q.Text)
	switch {
	case line.Hint == "none":
		q.Kind, q.Secret = KindNotice, false
	case hostKey != nil || askedFor.MatchString(q.Text):
		q.Kind, q.Secret = KindHostKey, false
		if hostKey == nil && !strings.Contains(strings.ToLower(q.Text), "fingerprint") {
			q.Kind = KindConfirm
		}
		if hostKey != nil {
			q.Host = hostKey[1]
		}
		q.Fingerprint = keyFingerprint.FindString(q.Text)
	case line.Hint == "confirm":
		q.Kind, q.Secret = KindConfirm, false
	case askedPassphrase.MatchString(q.Text):
		q.Kind = KindPassphrase
	case askedFactor.MatchString(q.Text):
		q.Kind = KindMFA
	case askedPassword.MatchString(q.Text):
		q.Kind = KindPassword
	}
	return q
}

// printable takes out what could play tricks with whatever shows a text.
func printable(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\t':
			return ' '
		case r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "�")))
}
