package shell

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// viewer reads a terminal and lets a test wait for what it shows.
type viewer struct {
	t        *testing.T
	terminal *Terminal
	mu       sync.Mutex // guards text and wake
	text     string
	wake     chan struct{}
}

func open(t *testing.T, w *World, cols int, command ...string) *viewer {
	t.Helper()
	terminal, err := Open(w, testEnv, "", "pts/0", cols, 24, command)
	if err != nil {
		t.Fatal(err)
	}
	v := &viewer{t: t, terminal: terminal, wake: make(chan struct{})}
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := terminal.Read(buffer)
			v.mu.Lock()
			v.text += string(buffer[:n])
			close(v.wake)
			v.wake = make(chan struct{})
			v.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		terminal.Close() //nolint:errcheck // always nil
		terminal.Wait()
	})
	return v
}

func (v *viewer) key(text string) {
	v.t.Helper()
	if _, err := v.terminal.Write([]byte(text)); err != nil {
		v.t.Fatal(err)
	}
}

// see waits for text, forgets everything up to its end and returns what came before it.
func (v *viewer) see(text string) string {
	v.t.Helper()
	timer := time.NewTimer(2 * time.Minute)
	defer timer.Stop()
	for {
		v.mu.Lock()
		before, after, found := strings.Cut(v.text, text)
		if found {
			v.text = after
			v.mu.Unlock()
			return before
		}
		seen, wake := v.text, v.wake
		v.mu.Unlock()
		select {
		case <-wake:
		case <-timer.C:
			v.t.Fatalf("waited in vain for %q, saw %q", text, seen)
		}
	}
}

const prompt = "work@main1:~$ "

func TestTerminalIsAShell(t *testing.T) {
	t.Run("it echoes, runs and prompts again", func(t *testing.T) {
		v := open(t, newWorld(t), 80)
		v.see(prompt)
		v.key("echo hel")
		v.see("echo hel")
		v.key("lo\r")
		v.see("lo\r\nhello\r\n" + prompt)
		v.key("cd /tmp\r")
		v.see("work@main1:/tmp$ ")
	})
	t.Run("the line can be edited and recalled", func(t *testing.T) {
		v := open(t, newWorld(t), 80)
		v.see(prompt)
		v.key("echo wrong\x7f\x7f\x7f\x7f\x7fright\r")
		v.see("\r\nright\r\n" + prompt)
		v.key("\x1b[A\r")
		v.see("\r\nright\r\n" + prompt)
		v.key("b\x01echo a\x05c\x1b[D\x1b[D \r")
		v.see("\r\na bc\r\n" + prompt)
		v.key("echo lost words\x17\x17kept\x15echo all\r")
		v.see("\r\nall\r\n" + prompt)
	})
	t.Run("Ctrl-C ends the command and not the shell", func(t *testing.T) {
		v := open(t, newWorld(t), 80)
		v.see(prompt)
		v.key("sleep 600\r")
		v.see("600\r\n")
		v.key("\x03")
		v.see("^C\r\n" + prompt)
		v.key("echo $?\r")
		v.see("\r\n130\r\n" + prompt)
		v.key("half a line\x03")
		v.see("^C\r\n" + prompt)
		v.key("while :; do :; done\r")
		v.see("done\r\n")
		v.key("\x03")
		v.see(prompt)
		v.key("cat\r")
		v.see("cat\r\n")
		v.key("\x03")
		v.see(prompt)
	})
	t.Run("Ctrl-D ends input and then the shell", func(t *testing.T) {
		v := open(t, newWorld(t), 80)
		v.see(prompt)
		v.key("cat\r")
		v.see("cat\r\n")
		v.key("typed\r")
		v.see("typed\r\ntyped\r\n")
		v.key("\x04")
		v.see(prompt)
		v.key("\x04")
		v.see("exit\r\n")
		if code := v.terminal.Wait(); code != 0 {
			t.Errorf("got %d", code)
		}
	})
	t.Run("Ctrl-L clears the screen and keeps the line", func(t *testing.T) {
		v := open(t, newWorld(t), 80)
		v.see(prompt)
		v.key("echo kept\x0c")
		v.see("\x1b[2J\x1b[H")
		v.see(prompt + "echo kept")
	})
	t.Run("exit ends it with a code", func(t *testing.T) {
		v := open(t, newWorld(t), 80)
		v.see(prompt)
		v.key("exit 5\r")
		if code := v.terminal.Wait(); code != 5 {
			t.Errorf("got %d, want 5", code)
		}
	})
}

func TestTerminalTakesLines(t *testing.T) {
	t.Run("a command of several lines is asked for", func(t *testing.T) {
		v := open(t, newWorld(t), 80)
		v.see(prompt)
		v.key("for i in 1 2\r")
		v.see("> ")
		v.key("do echo n$i; done\r")
		v.see("\r\nn1\r\nn2\r\n" + prompt)
	})
	t.Run("what is pasted runs line by line", func(t *testing.T) {
		v := open(t, newWorld(t), 80)
		v.see(prompt)
		v.key("echo first\recho second\recho third\r")
		v.see("\r\nfirst\r\n" + prompt)
		v.see("echo second\r\nsecond\r\n" + prompt)
		v.see("third\r\n" + prompt)
	})
	t.Run("what is typed ahead is run afterwards", func(t *testing.T) {
		w := newWorld(t)
		v, other := open(t, w, 80), open(t, w, 80)
		v.see(prompt)
		v.key("until [ -e go ]; do sleep 0.01; done\r")
		v.see("done\r\n")
		v.key("echo ahead\r")
		v.see("echo ahead\r\n")
		other.key("touch go\r")
		v.see(prompt)
		v.see("\r\nahead\r\n" + prompt)
	})
	t.Run("read takes a line from the terminal", func(t *testing.T) {
		v := open(t, newWorld(t), 80)
		v.see(prompt)
		v.key("read x; echo got $x\r")
		v.see("$x\r\n")
		v.key("wrx\x7fong\r")
		v.see("got wrong\r\n")
	})
	t.Run("variables, functions and the directory last", func(t *testing.T) {
		v := open(t, newWorld(t), 80)
		v.see(prompt)
		v.key("x=5; f() { echo f$1; }\r")
		v.see(prompt)
		v.key("f $x\r")
		v.see("f5\r\n")
	})
	t.Run("tab completes commands and files", func(t *testing.T) {
		v := open(t, newWorld(t), 80)
		v.see(prompt)
		v.key("mkdir letters; touch letters/long-name\r")
		v.see(prompt)
		v.key("whoa\t\r")
		v.see("work\r\n" + prompt)
		v.key("ls le\tlo\t\r")
		v.see("\r\nletters/long-name\r\n")
	})
	t.Run("long lines and wide characters are taken", func(t *testing.T) {
		v := open(t, newWorld(t), 20)
		v.see(prompt)
		v.key("echo 한글 " + strings.Repeat("x", 30) + "\x7f\x7f\r")
		v.see("\r\n한글 " + strings.Repeat("x", 28) + "\r\n" + prompt)
	})
	t.Run("a resize is heeded", func(t *testing.T) {
		v := open(t, newWorld(t), 200)
		v.see(prompt)
		if err := v.terminal.Resize(20, 10); err != nil {
			t.Fatal(err)
		}
		v.key("top\r")
		v.see("of 2 bu\x1b[K")
	})
}

func TestTerminalRunsPrograms(t *testing.T) {
	t.Run("a command takes the place of the shell", func(t *testing.T) {
		v := open(t, newWorld(t), 80, "sh", "-c", "echo $0; exit 3")
		v.see("sh\r\n")
		if code := v.terminal.Wait(); code != 3 {
			t.Errorf("got %d, want 3", code)
		}
	})
	t.Run("much output waits for its reader and can be interrupted", func(t *testing.T) {
		v := open(t, newWorld(t), 80)
		v.see(prompt)
		v.key("seq 200000 | tail -n 1; seq 100000\r")
		v.see("\r\n200000\r\n")
		v.see("\r\n100000\r\n" + prompt)
		v.key("while :; do echo y; done\r")
		v.see("y\r\ny\r\ny\r\n")
		v.key("\x03")
		v.see("^C")
		v.see(prompt)
	})
	t.Run("closing it ends what runs", func(t *testing.T) {
		w := newWorld(t)
		v := open(t, w, 80)
		v.see(prompt)
		v.key("sleep 600\r")
		v.see("600\r\n")
		if err := v.terminal.Close(); err != nil {
			t.Fatal(err)
		}
		if code := v.terminal.Wait(); code != 129 || len(w.Processes()) != 1 {
			t.Errorf("got code %d and processes %+v", code, w.Processes())
		}
	})
	t.Run("ps shows what runs and kill ends it", func(t *testing.T) {
		v := open(t, newWorld(t), 80)
		v.see(prompt)
		v.key("sleep 600 & until ps > list; grep sleep list; do sleep 0.01; done\r")
		line := v.see(prompt)
		fields := strings.Fields(line[strings.LastIndex(line, "done\r\n")+len("done\r\n"):])
		v.key("kill " + fields[0] + "; wait; ps > list; grep -c sleep list\r")
		v.see("\r\n0\r\n")
	})
}

// FuzzKeys edits a line with any keys at any width: the terminal takes a command afterwards.
func FuzzKeys(f *testing.F) {
	for _, seed := range []string{"ls -l", "a\x1b[D\x1b[Db\x7f", "\x1b[A\x1b[B\x1b[3~\x03",
		"한글🙂\x01\x0b\x19\t\t", "\x1b[1;5Dx\x1b\x7f\x15\x17\x0c", "\x1b[200~pasted",
		"\x1b[" + strings.Repeat("1", 600), "\xff\xfe", "l\t\t"} {
		f.Add(seed, uint8(20))
	}
	f.Fuzz(func(t *testing.T, typed string, cols uint8) {
		v := open(t, newWorld(t), int(cols))
		v.key(strings.NewReplacer("\x04", "", "\r", "", "\n", "").Replace(typed))
		v.key("\x1b[201~\x1b[201~\x03") // the ends of a sequence and of what is pasted
		v.see("^C")
		v.key("echo still-$((40+2))\r")
		v.see("still-42\r\n")
	})
}

func TestFilesAreServed(t *testing.T) {
	w := newWorld(t)
	v := open(t, w, 80)
	v.see(prompt)
	v.key("echo '<b>page</b>' > index.html; httpd -p 8080\r")
	v.see("on port 8080\r\n")
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn,
		error) {
		return w.Dial(ctx, 8080)
	}}}
	resp, err := client.Get("http://session:8080/")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil || string(body) != "<b>page</b>\n" {
		t.Errorf("got %q, %v", body, err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
	v.key("\x03")
	v.see(prompt)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := w.Dial(ctx, 8080); err == nil {
		t.Error("the port is still open")
	}
}

func TestTerminalTellsWhatRunsInFront(t *testing.T) {
	v := open(t, newWorld(t), 80)
	v.see("$ ")
	if front, known := v.terminal.Foreground(); front != "" || !known {
		t.Errorf("at the prompt %q, %t", front, known)
	}
	v.key("echo begun; sleep 60\r")
	v.see("begun\r\n")
	if front, known := v.terminal.Foreground(); front != "echo begun; sleep 60" || !known {
		t.Errorf("while it runs %q, %t", front, known)
	}
	v.key("\x03")
	v.see("$ ")
	deadline := time.Now().Add(2 * time.Minute)
	for front := "?"; front != ""; front, _ = v.terminal.Foreground() {
		if time.Now().After(deadline) {
			t.Fatalf("after its end %q", front)
		}
		time.Sleep(time.Millisecond)
	}
}
