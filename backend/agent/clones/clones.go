// Package clones makes folders of repositories that the git of this machine clones.
package clones

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"

	"slipway/backend/agent/folders"
	"slipway/backend/agent/host"
	"slipway/backend/gitclone"
	"slipway/backend/project"
	"slipway/backend/session"
	"slipway/tunnel/askpass"
	"slipway/tunnel/sshstdio"
)

// atOnce is how many repositories of one person are cloned at a time.
const atOnce = 4

// Config says where repositories are cloned.
type Config struct {
	host.Host
	Dir     string // where git's questions go
	Folders *folders.Folders
}

// Clones runs git for people.
type Clones struct {
	config Config
	life   context.Context //nolint:containedctx // of every run of git, which its caller does not wait for
	end    context.CancelFunc
	tasks  sync.WaitGroup

	mu      sync.Mutex // guards the following, and that no task begins after Run has ended
	running map[string]int
}

// Open removes what earlier runs of the agent have left.
func Open(config Config) (*Clones, error) {
	if err := sshstdio.Sweep(config.Dir); err != nil {
		return nil, err
	}
	c := &Clones{config: config, running: map[string]int{}}
	c.life, c.end = context.WithCancel(context.Background())
	return c, nil
}

// Run ends every git when ctx ends.
func (c *Clones) Run(ctx context.Context) {
	<-ctx.Done()
	c.mu.Lock()
	c.end()
	c.mu.Unlock()
	c.tasks.Wait()
}

// CloneFolder implements [session.Projects].
func (c *Clones) CloneFolder(_ context.Context, req session.CloneRequest) (io.ReadWriteCloser, error) {
	repository, err := project.ParseRepository(req.Address)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(repository.Address, "https://") && !strings.HasPrefix(repository.Address, "http://") {
		return nil, session.NewError(session.CodeFileInvalid,
			"The git of another machine has no keys of yours, and clones only from https:// and http:// addresses.",
			"Use such an address, or install git on your own computer.")
	}
	if !gitclone.Installed() {
		return nil, session.NewError(session.CodeEngineUnsupported,
			fmt.Sprintf("There is no git on the machine %s.", c.config.Agent),
			"Install it there, for example with apt install git, or ask its admin.")
	}
	owner := cmp.Or(req.Owner, c.config.Owner)
	if err := c.enter(owner); err != nil {
		return nil, err
	}
	staging, err := folders.Stage(c.config.Folders, session.FolderRequest{Owner: owner, Name: req.Name})
	if err != nil {
		c.leave(owner)
		return nil, err
	}
	near, far := net.Pipe()
	go func() {
		defer c.leave(owner)
		c.clone(repository, staging, far)
	}()
	return near, nil
}

// enter begins a task, which leave ends.
func (c *Clones) enter(owner string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[owner] >= atOnce || c.life.Err() != nil {
		return session.NewError(session.CodeAgentBusy,
			fmt.Sprintf("%d repositories of yours are being cloned already.", c.running[owner]),
			"Try again when one is done.")
	}
	c.running[owner]++
	c.tasks.Add(1)
	return nil
}

func (c *Clones) leave(owner string) {
	defer c.tasks.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[owner]--; c.running[owner] == 0 {
		delete(c.running, owner)
	}
}

// clone runs git until it ends or the caller leaves.
func (c *Clones) clone(repository project.Repository, staging *folders.Staging, conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(c.life, func() { conn.Close() })() // the caller may listen no more
	ctx, cancel := context.WithCancel(c.life)
	defer cancel()
	from := &caller{conn: conn, answers: make(chan string), gone: cancel}
	c.tasks.Go(func() { from.listen(ctx) })
	err := gitclone.Clone{Repository: repository, Dir: staging.Dir, Sockets: c.config.Dir, Asker: from,
		Tell:  func(line string) { from.say(session.CloneNews{Line: line}) },
		Apart: true}.Run(ctx)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = staging.Keep()
	} else if left := staging.Discard(); left != nil {
		c.config.Log.Warn("what git has left could not be removed", "error", left)
	}
	if err != nil {
		from.say(session.CloneNews{Failed: session.CauseOf(err, session.CodeCommandFailed)})
		return
	}
	from.say(session.CloneNews{Done: true})
}

// caller is who waits for a clone, and answers git. It is an [askpass.Asker].
type caller struct {
	conn    net.Conn
	answers chan string
	gone    func() // called when the caller has left

	mu sync.Mutex // held while something is said
}

func (c *caller) say(news session.CloneNews) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if json.NewEncoder(c.conn).Encode(news) != nil {
		c.gone()
	}
}

// listen passes answers on until the caller leaves.
func (c *caller) listen(ctx context.Context) {
	defer c.gone()
	lines := bufio.NewScanner(c.conn)
	lines.Buffer(nil, session.MaxCloneLine)
	for lines.Scan() {
		var said session.CloneAnswer
		if json.Unmarshal(lines.Bytes(), &said) != nil {
			return
		}
		select {
		case c.answers <- said.Answer:
		case <-ctx.Done():
			return
		}
	}
}

func (c *caller) Ask(ctx context.Context, q askpass.Question) (string, error) {
	c.say(session.CloneNews{Ask: &session.CloneQuestion{Text: q.Text, Secret: q.Secret, Again: q.Again}})
	select {
	case answer := <-c.answers:
		return answer, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
