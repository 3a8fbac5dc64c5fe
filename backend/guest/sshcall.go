package guest

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// sshCall is the command line of the guest's ssh.
type sshCall struct {
	host    string // as written
	target  string // to connect to
	user    string
	port    int
	keys    []string // files
	command string   // empty: a shell
	noInput bool     // -n
	tty     int      // -t counts up, -T is -1
	version bool     // -V
	unsafe  bool     // StrictHostKeyChecking is off
	timeout time.Duration
	dir     string // ~/.ssh
}

// connectTimeout is the default of the option ConnectTimeout.
const connectTimeout = 30 * time.Second

// The options of OpenSSH that this ssh ignores, those with a value, and those that it refuses.
const (
	sshIgnored  = "1246aAcCfgGkKMqsvxXyY"
	sshValued   = "BbcEeFIilmOoPpQSw"
	sshForwards = "DLRWJN"
)

func parseSSH(args []string) (*sshCall, error) {
	c := &sshCall{}
	args, err := c.options(args)
	if err != nil || c.version {
		return c, err
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return nil, errors.New("usage: ssh [-tTn] [-p port] [-l user] [-i file] [-o option] [user@]host [command]")
	}
	c.host = strings.TrimPrefix(args[0], "ssh://")
	if at := strings.LastIndexByte(c.host, '@'); at > 0 {
		c.user, c.host = cmp.Or(c.user, c.host[:at]), c.host[at+1:]
	}
	args, err = c.options(args[1:]) // options may also follow the host
	c.command = strings.Join(args, " ")
	return c, err
}

// options parses the options at the start of args and returns the rest.
func (c *sshCall) options(args []string) ([]string, error) {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "-" && args[0] != "--" {
		rest, err := c.flags(args[0][1:], args[1:])
		if err != nil {
			return nil, err
		}
		args = rest
	}
	return args, nil
}

// flags parses one argument of options and returns the rest.
func (c *sshCall) flags(letters string, rest []string) ([]string, error) {
	for i, letter := range letters {
		switch {
		case letter == 'n':
			c.noInput = true
		case letter == 't':
			c.tty++
		case letter == 'T':
			c.tty = -1
		case letter == 'V':
			c.version = true
		case strings.ContainsRune(sshIgnored, letter):
		case strings.ContainsRune(sshForwards, letter):
			return nil, fmt.Errorf("this ssh does not support -%c; install openssh-client", letter)
		case strings.ContainsRune(sshValued, letter):
			value := letters[i+1:]
			if value == "" {
				if len(rest) == 0 {
					return nil, fmt.Errorf("-%c needs a value", letter)
				}
				value, rest = rest[0], rest[1:]
			}
			return rest, c.valued(letter, value)
		default:
			return nil, fmt.Errorf("unknown option -%c", letter)
		}
	}
	return rest, nil
}

func (c *sshCall) valued(letter rune, value string) error {
	name := map[rune]string{'p': "port", 'l': "user", 'i': "identityfile"}[letter]
	if letter == 'o' {
		var ok bool
		if name, value, ok = strings.Cut(value, "="); !ok {
			name, value, _ = strings.Cut(name, " ")
		}
		name, value = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)
	}
	return c.option(name, value)
}

// option sets an option. As in OpenSSH, the first value counts.
func (c *sshCall) option(name, value string) error {
	number := func() (int, error) {
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > 65535 {
			return 0, fmt.Errorf("%q is not a value for %s", value, name)
		}
		return n, nil
	}
	var err error
	switch name {
	case "hostname":
		c.target = cmp.Or(c.target, value)
	case "user":
		c.user = cmp.Or(c.user, value)
	case "port":
		if c.port == 0 {
			c.port, err = number()
		}
	case "connecttimeout":
		var seconds int
		if seconds, err = number(); c.timeout == 0 {
			c.timeout = time.Duration(seconds) * time.Second
		}
	case "identityfile":
		c.keys = append(c.keys, value)
	case "stricthostkeychecking":
		c.unsafe = c.unsafe || value == "no" || value == "off" || value == "accept-new"
	}
	return err
}

// apply sets options of a configuration file after those of the command line.
func (c *sshCall) apply(options [][2]string, home string) {
	for _, o := range options {
		if o[0] == "stricthostkeychecking" {
			continue // only a command line may disable the check
		}
		_ = c.option(o[0], o[1]) // invalid values are ignored
	}
	for i, key := range c.keys {
		if rest, ok := strings.CutPrefix(key, "~/"); ok {
			c.keys[i] = filepath.Join(home, rest)
		}
	}
}

func (c *sshCall) fill() {
	c.target = cmp.Or(c.target, c.host)
	c.user = cmp.Or(c.user, User)
	c.port = cmp.Or(c.port, 22)
	c.timeout = cmp.Or(c.timeout, connectTimeout)
}

// wantsTTY reports whether to request a terminal: for a shell or with -t if here is one, always with -tt.
func (c *sshCall) wantsTTY(here bool) bool {
	switch {
	case c.tty < 0 || c.tty == 1 && !here || c.noInput && c.tty == 0:
		return false
	case c.tty > 0:
		return true
	}
	return here && c.command == ""
}

// sshConfig returns the options for a host in a configuration, in order, with lower-case names, without Match blocks.
func sshConfig(text, host string) [][2]string {
	var options [][2]string
	applies := true
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, _ := strings.Cut(strings.Replace(line, "=", " ", 1), " ")
		name, value = strings.ToLower(name), strings.Trim(strings.TrimSpace(value), `"`)
		switch {
		case name == "host":
			applies = matchesHost(strings.Fields(value), host)
		case name == "match":
			applies = value == "all"
		case applies:
			options = append(options, [2]string{name, value})
		}
	}
	return options
}

// matchesHost reports whether a host matches patterns and is not excluded by one.
func matchesHost(patterns []string, host string) bool {
	matched := false
	for _, pattern := range patterns {
		negative := strings.HasPrefix(pattern, "!")
		if ok, err := path.Match(strings.TrimPrefix(pattern, "!"), host); ok && err == nil {
			if negative {
				return false
			}
			matched = true
		}
	}
	return matched
}
