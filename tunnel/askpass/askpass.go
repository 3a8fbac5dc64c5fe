// Package askpass lets programs such as ssh and git ask a person. They start this program as their askpass program
// ([Main]), which calls back over a private socket, and [Questions] pass what it asks to an [Asker]. Answers never
// appear in an argument, an environment or a log.
package askpass

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway/tunnel/pipe"
)

// The askpass program and this process exchange one line of JSON each way over a socket that only this account can
// open.
type (
	askLine struct {
		Prompt string `json:"prompt"`
		Hint   string `json:"hint,omitempty"` // of SSH_ASKPASS_PROMPT: "confirm" or "none"
	}
	answerLine struct {
		Answer  string `json:"answer"`
		Refused bool   `json:"refused,omitempty"`
	}
)

const (
	maxLine      = 32 << 10         // bytes; a host key's question has about 400
	lineTimeout  = 10 * time.Second // for the exchange of a line, without the person's time
	maxQuestions = 32               // of one program
)

var errRefused = errors.New("askpass: the question was refused")

// Questions answers what one program asks, until it is closed. A nil one has no person to ask.
type Questions struct {
	path     string
	self     string // this program, which calls Main first of all
	asker    Asker
	listener net.Listener
	cancel   context.CancelFunc
	refused  chan struct{} // closed when the person refused to answer
	asking   chan struct{} // holds one token, so that questions come one by one
	serving  sync.WaitGroup

	mu     sync.Mutex // guards the following
	err    error      // why it was refused
	asked  bool       // a secret was asked for and entered
	before Question   // the previous one
	count  int
}

// Listen opens a socket in a folder that only this account may enter. It returns nil without an asker.
func Listen(ctx context.Context, folder string, asker Asker) (*Questions, error) {
	if asker == nil {
		return nil, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("askpass: find this program: %w", err)
	}
	path := filepath.Join(folder, "q"+rand.Text()[:12])
	listener, err := pipe.Listen(path)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	q := &Questions{
		path: path, self: self, asker: asker, listener: listener, cancel: cancel,
		refused: make(chan struct{}), asking: make(chan struct{}, 1),
	}
	q.serving.Go(func() { q.serve(ctx) })
	return q, nil
}

// Environment is this process's for a program whose questions q answers, without other ways for ssh and git to ask. If
// q is nil, they do not ask.
func Environment(q *Questions) []string {
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains([]string{"SSH_ASKPASS", "SSH_ASKPASS_REQUIRE", "GIT_ASKPASS", variable}, name)
	})
	env = append(env, "GIT_TERMINAL_PROMPT=0")
	if q == nil {
		return append(env, "SSH_ASKPASS_REQUIRE=never")
	}
	if os.Getenv("DISPLAY") == "" {
		env = append(env, "DISPLAY=:0") // before OpenSSH 8.4 nothing is asked without one
	}
	return append(env, "SSH_ASKPASS="+q.self, "SSH_ASKPASS_REQUIRE=force", "GIT_ASKPASS="+q.self, variable+"="+q.path)
}

// Close withdraws open questions and waits until the asker has returned.
func (q *Questions) Close() {
	if q == nil {
		return
	}
	q.cancel()
	_ = q.listener.Close() // removes the socket
	q.serving.Wait()
}

// Refused is closed when a person has refused to answer.
func (q *Questions) Refused() <-chan struct{} {
	if q == nil {
		return nil
	}
	return q.refused
}

// Outcome returns whether a person entered a secret, and why they refused to answer, nil if they did not.
func (q *Questions) Outcome() (secret bool, refusal error) {
	if q == nil {
		return false, nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.asked, q.err
}

func (q *Questions) serve(ctx context.Context) {
	for {
		conn, err := q.listener.Accept()
		if err != nil {
			return
		}
		q.mu.Lock()
		q.count++
		tooMany := q.count > maxQuestions
		q.mu.Unlock()
		if tooMany {
			_ = conn.Close()
			continue
		}
		q.serving.Go(func() { q.answer(ctx, conn) })
	}
}

// answer serves one run of Main. The question ends with it, and ssh ends it when what it announced has happened.
func (q *Questions) answer(ctx context.Context, conn net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	var line askLine
	if err := readLine(conn, &line); err != nil {
		return
	}
	q.serving.Go(func() { // nothing more comes but the end
		_, _ = conn.Read(make([]byte, 1))
		cancel()
	})
	reply, err := q.ask(ctx, line)
	if err != nil {
		if ctx.Err() == nil {
			_ = writeLine(conn, answerLine{Refused: true})
		}
		return
	}
	_ = writeLine(conn, answerLine{Answer: reply})
}

func (q *Questions) ask(ctx context.Context, line askLine) (string, error) {
	question := classify(line)
	select {
	case q.asking <- struct{}{}:
		defer func() { <-q.asking }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	q.mu.Lock()
	if q.err != nil {
		q.mu.Unlock()
		return "", errRefused
	}
	question.Again = question.Kind != KindNotice && q.before.Text == question.Text
	q.before = question
	q.mu.Unlock()
	reply, err := q.asker.Ask(ctx, question)
	if question.Kind == KindNotice {
		<-ctx.Done() // it is shown until the program withdraws it
		return "", ctx.Err()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		q.err = err
		close(q.refused)
		return "", errRefused
	}
	q.asked = q.asked || question.Secret
	return reply, nil
}

func readLine(conn net.Conn, into any) error {
	if err := conn.SetReadDeadline(time.Now().Add(lineTimeout)); err != nil {
		return err
	}
	if err := parseLine(conn, into); err != nil {
		return err
	}
	return conn.SetReadDeadline(time.Time{})
}

func parseLine(conn net.Conn, into any) error {
	line, err := bufio.NewReader(io.LimitReader(conn, maxLine)).ReadBytes('\n')
	if err == nil && json.Unmarshal(line, into) != nil {
		err = errors.New("askpass: an unreadable line") // without its content
	}
	return err
}

func writeLine(conn net.Conn, line any) error {
	data, err := json.Marshal(line)
	if err != nil {
		return err
	}
	if err := conn.SetWriteDeadline(time.Now().Add(lineTimeout)); err != nil {
		return err
	}
	_, err = conn.Write(append(data, '\n'))
	return err
}

// Kind is what a question asks for, so that a dialog can choose the field and the words.
type Kind string

// The kinds of questions. The answer to KindHostKey and KindConfirm is "yes" or "no", to others text. KindNotice has no
// answer: its context ends when the person has done what it says, for example touched a security key.
const (
	KindUsername   Kind = "username"
	KindPassword   Kind = "password"
	KindPassphrase Kind = "passphrase"
	KindMFA        Kind = "mfa"
	KindHostKey    Kind = "host-key"
	KindConfirm    Kind = "confirm"
	KindNotice     Kind = "notice"
)

// Question is a question to a person.
type Question struct {
	Text        string // in the words of the program that asks
	Kind        Kind
	Secret      bool   // the answer must not be shown while it is typed, nor kept
	Again       bool   // it was asked just before: the answer was not accepted
	Fingerprint string // of the host key, for example "SHA256:…"; only with KindHostKey
	Host        string // of the key, as ssh names it; only with KindHostKey
}

// Asker asks a person. Ask returns the answer, ctx's error when that ends, or any other error when the person refuses.
// Each program's questions come one at a time.
type Asker interface {
	Ask(ctx context.Context, question Question) (answer string, err error)
}

// variable names the socket of the process that asks. It is no secret.
const variable = "SLIPWAY_ASKPASS"

// Main runs when ssh or git may have started this executable to ask a question. If so, handled is true and the caller
// exits with the code at once. args are without the program's name.
func Main(args []string, env func(string) string, stdout, stderr io.Writer) (exit int, handled bool) {
	socket := env(variable)
	if socket == "" || len(args) != 1 {
		return 0, false // they give one argument, the question
	}
	reply, err := askOverSocket(socket, askLine{Prompt: args[0], Hint: env("SSH_ASKPASS_PROMPT")})
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "slipway: cannot ask:", err)
		return 1, true
	case reply.Refused || env("SSH_ASKPASS_PROMPT") == "confirm" && reply.Answer != "yes":
		return 1, true
	}
	fmt.Fprintln(stdout, reply.Answer)
	return 0, true
}

func askOverSocket(socket string, line askLine) (answerLine, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lineTimeout)
	defer cancel()
	conn, err := pipe.Dial(ctx, socket)
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
	var reply answerLine
	err = parseLine(conn, &reply)
	return reply, err
}

// The questions of ssh and git are in English. Those of a server's PAM modules may not be, and count as a second factor
// unless they name a password.
var (
	askedHostKey    = regexp.MustCompile(`The authenticity of host '([^']{1,400})' can't be established`)
	askedFor        = regexp.MustCompile(`(?i)\(yes/no(/\[fingerprint\])?\)\?|please type 'yes'`)
	keyFingerprint  = regexp.MustCompile(`\b(SHA256:[A-Za-z0-9+/]{43}|MD5(:[0-9a-f]{2}){16})`)
	askedUsername   = regexp.MustCompile(`^Username for '`)
	askedLogin      = regexp.MustCompile(`^Password for 'https?://`)
	askedPassphrase = regexp.MustCompile(`(?i)^(enter )?(passphrase|password) for ('|"|\S*key|\S*/)|passphrase`)
	askedPassword   = regexp.MustCompile(
		`(?i)password|passwort|mot de passe|contraseña|senha|пароль|パスワード|비밀번호|密码|密碼|암호`)
	askedFactor = regexp.MustCompile(`(?i)one-time|otp|token|verification|passcode|second factor|2fa|\bcode\b`)
)

// classify finds out what is asked for.
func classify(line askLine) Question {
	q := Question{Text: Printable(line.Prompt), Kind: KindMFA, Secret: true}
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
	case askedUsername.MatchString(q.Text):
		q.Kind, q.Secret = KindUsername, false
	case askedLogin.MatchString(q.Text):
		q.Kind = KindPassword
	case askedPassphrase.MatchString(q.Text):
		q.Kind = KindPassphrase
	case askedFactor.MatchString(q.Text):
		q.Kind = KindMFA
	case askedPassword.MatchString(q.Text):
		q.Kind = KindPassword
	}
	return q
}

// Printable removes control characters that could change how a text is shown.
func Printable(text string) string {
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
