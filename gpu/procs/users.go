package procs

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// users gives names to user numbers: from the machine's own file, else from its directory service. Each number is asked
// for once an hour at most.
type users struct {
	file string
	ask  func(uid int) (string, bool)

	mu    sync.Mutex // guards known
	known map[int]knownUser
}

type knownUser struct {
	name  string
	until time.Time
}

const userLife = time.Hour

func (u *users) name(uid int) string {
	now := time.Now()
	u.mu.Lock()
	k, ok := u.known[uid]
	u.mu.Unlock()
	if ok && now.Before(k.until) {
		return k.name
	}
	name, ok := u.inFile(uid)
	if !ok {
		name, ok = u.ask(uid)
	}
	if !ok || name == "" {
		name = strconv.Itoa(uid)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.known == nil {
		u.known = map[int]knownUser{}
	}
	u.known[uid] = knownUser{name: name, until: now.Add(userLife)}
	return name
}

func (u *users) inFile(uid int) (string, bool) {
	f, err := os.Open(u.file)
	if err != nil {
		return "", false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Split(lines.Text(), ":"); len(fields) > 2 && fields[2] == strconv.Itoa(uid) {
			return fields[0], true
		}
	}
	return "", false
}

// askSystem asks getent, which knows LDAP and the like. A program without C libraries cannot ask them itself, and one
// with them could hang in them.
func askSystem(uid int) (string, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "getent", "passwd", strconv.Itoa(uid)).Output()
	name, _, found := strings.Cut(string(out), ":")
	return name, err == nil && found
}
