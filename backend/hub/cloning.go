package hub

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"slipway/backend/project"
	"slipway/backend/session"
	"slipway/backend/vet"
)

const cloneQuestions = 32 // of one clone by another machine

// cloneThere has the git of a machine clone a repository. The end of ctx ends that git, too.
func (p *projects) cloneThere(ctx context.Context, work *Work, r project.Repository, name string, far *member) error {
	address := r.Address
	if r.Ref != "" {
		address += "@" + r.Ref
	}
	return work.Do("cloneThere", "Clone the repository with the git of "+far.Name(), func() (string, error) {
		stream, err := far.Agent.CloneFolder(ctx, session.CloneRequest{Name: name, Address: address})
		if err != nil {
			return "", err
		}
		defer stream.Close()
		defer context.AfterFunc(ctx, func() { stream.Close() })()
		err = (&cloning{work: work, machine: far.Name(), stream: stream}).follow(ctx)
		switch {
		case ctx.Err() != nil:
			err = ctx.Err()
		case session.CodeOf(err) == session.CodeAgentReply:
			p.distrust(far, err)
		}
		return name, err
	})
}

// cloning is a clone by another machine. What that says is a stranger's word.
type cloning struct {
	work    *Work
	machine string
	stream  io.ReadWriter
	shown   time.Time // when the person was shown a line
	asked   int
}

// follow shows what git prints and asks, until the machine is done.
func (c *cloning) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	linked, end := context.WithCancelCause(ctx) // ends with the stream, which withdraws a question
	heard := make(chan session.CloneNews, 1)
	go func() {
		defer close(heard)
		end(c.read(ctx, heard))
	}()
	for news := range heard {
		switch {
		case news.Done:
			return nil
		case news.Failed != nil:
			return news.Failed.Failure(nil)
		case news.Ask == nil:
			c.show(news.Line)
		default:
			if err := c.ask(linked, *news.Ask); err != nil && linked.Err() == nil {
				return err
			}
		}
	}
	return context.Cause(linked)
}

// read reads what the machine says, and returns why it ended.
func (c *cloning) read(ctx context.Context, heard chan<- session.CloneNews) error {
	lines := bufio.NewScanner(c.stream)
	lines.Buffer(nil, session.MaxCloneLine)
	for lines.Scan() {
		var news session.CloneNews
		err := json.Unmarshal(lines.Bytes(), &news)
		if err == nil {
			err = vet.Check(&news)
		}
		if err != nil {
			return c.invalid(err)
		}
		select {
		case heard <- news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return c.invalid(lines.Err())
	}
	return session.WrapError(lines.Err(), session.CodeAgentUnavailable,
		fmt.Sprintf("The connection to %s was lost while it cloned the repository.", c.machine),
		"Look whether the folder is there, and clone it again if not.")
}

func (c *cloning) invalid(err error) error {
	return session.WrapError(err, session.CodeAgentReply,
		fmt.Sprintf("The agent %s sent invalid data while it cloned the repository.", c.machine),
		"Upgrade Slipway on both machines. If it happens again, ask the admin of that machine.")
}

// show shows a line, unless one was shown just now.
func (c *cloning) show(line string) {
	if now := c.work.registry.now(); now.Sub(c.shown) >= tellEvery {
		c.shown = now
		c.work.Tell(Step{Name: "cloneThere", State: StepRunning, Detail: line})
	}
}

// ask asks the person, who learns first where the answer goes.
func (c *cloning) ask(ctx context.Context, question session.CloneQuestion) error {
	if c.asked++; c.asked > cloneQuestions {
		return c.invalid(errors.New("too many questions"))
	}
	prompt := Prompt{Kind: PromptUsername, Secret: question.Secret, Again: question.Again,
		Text: fmt.Sprintf("Your answer goes to %s, whose git asks: %s", c.machine, question.Text)}
	if question.Secret {
		prompt.Kind = PromptPassword
	}
	answer, err := c.work.Ask(ctx, prompt)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(c.stream).Encode(session.CloneAnswer{Answer: answer}); err != nil {
		return session.WrapError(err, session.CodeAgentUnavailable, "The answer did not reach "+c.machine+".",
			"Clone the repository again.")
	}
	return nil
}
