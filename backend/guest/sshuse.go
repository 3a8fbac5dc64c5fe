package guest

import (
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"slipway/backend/session"
	"slipway/backend/terminal"
)

// sshUse notes what goes through the person's ssh server. Signs of life are not in it, which whoever sees only the
// encrypted bytes could not tell. A nil one notes nothing.
type sshUse struct {
	mu    sync.Mutex // guards what follows
	last  time.Time  // something went through
	input time.Time  // somebody typed
	works []*sshWork
}

// sshWork is a program that runs for a caller: on a terminal, or by the words of its command.
type sshWork struct {
	tty  terminal.TTY
	text string
}

// watch notes what goes through a channel.
func (u *sshUse) watch(channel ssh.Channel) ssh.Channel {
	if u == nil {
		return channel
	}
	return &watchedChannel{Channel: channel, use: u}
}

func (u *sshUse) seen(input bool) {
	if u == nil {
		return
	}
	now := time.Now().UTC()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last = now
	if input {
		u.input = now
	}
}

type watchedChannel struct {
	ssh.Channel
	use *sshUse
}

func (c *watchedChannel) Read(p []byte) (int, error) {
	n, err := c.Channel.Read(p)
	if n > 0 {
		c.use.seen(false)
	}
	return n, err
}

func (c *watchedChannel) Write(p []byte) (int, error) {
	n, err := c.Channel.Write(p)
	if n > 0 {
		c.use.seen(false)
	}
	return n, err
}

// typed is what a person types into a terminal.
type typed struct {
	ssh.Channel
	use *sshUse
}

func (t typed) Read(p []byte) (int, error) {
	n, err := t.Channel.Read(p)
	if n > 0 {
		t.use.seen(true)
	}
	return n, err
}

// foreground and work note a program until the function that they return is called.
func (u *sshUse) foreground(tty terminal.TTY) (left func()) { return u.add(&sshWork{tty: tty}) }
func (u *sshUse) work(text string) (left func())            { return u.add(&sshWork{text: text}) }

func (u *sshUse) add(w *sshWork) (left func()) {
	if u == nil {
		return func() {}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.works = append(u.works, w)
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.works = slices.DeleteFunc(u.works, func(other *sshWork) bool { return other == w })
	}
}

// describe tells what was noted.
func (u *sshUse) describe() session.SSHUse {
	u.mu.Lock()
	works := slices.Clone(u.works)
	told := session.SSHUse{Last: u.last, Input: u.input}
	u.mu.Unlock()
	for _, w := range works {
		program := w.text
		if tty, ok := w.tty.(Foregrounder); ok {
			program, _ = tty.Foreground() // one that is just ending is none
		}
		if program != "" {
			told.Program = program
		}
	}
	return told
}

// shorten is a command in as few words as tell it.
func shorten(words []string) string {
	const longest = 60
	text := []rune(strings.ToValidUTF8(strings.Join(words, " "), "?"))
	if len(text) > longest {
		text = append(text[:longest-1], '…')
	}
	return string(text)
}
