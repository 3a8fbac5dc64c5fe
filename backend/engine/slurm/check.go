package slurm

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"slipway/backend/session"
	"slipway/backend/slurm"
)

// Check asks Slurm whether it would take a session. Without an answer it finds nothing wrong.
func (p *Planner) Check(ctx context.Context, spec session.Spec) []session.FieldError {
	e := p.engine
	if spec.Slurm != nil {
		if wrong := slurm.CheckExtra("slurm.options", spec.Slurm.Options); len(wrong) > 0 {
			return wrong
		}
	}
	if _, err := e.nodes.runner(); err != nil {
		said := session.AsError(err, session.CodeEngineUnsupported)
		return []session.FieldError{{Field: "image", Kind: session.KindRange, Message: said.Message, Hint: said.Hint}}
	}
	terms, err := e.termsOf(ctx, spec)
	if session.CodeOf(err) == session.CodeEngineUnsupported {
		said := session.AsError(err, session.CodeEngineUnsupported)
		return []session.FieldError{{Field: "accelerator", Kind: session.KindRange, Message: said.Message,
			Hint: said.Hint}}
	}
	if err != nil {
		return nil
	}
	r := request(terms, max(1, spec.Cluster), e.config.Dir)
	r.Name, r.Script, r.Log = slurm.NameOf("check", 1), filepath.Join(e.config.Dir, checkFile), os.DevNull
	asked := strings.Join(r.Args(), "\x00")
	if known, ok := p.known(asked); ok {
		return known
	}
	_, err = e.config.Commands.Test(ctx, r)
	if err != nil && session.CodeOf(err) != session.CodeEngineInvalid {
		return nil
	}
	wrong := refusalOf(err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.checks[asked] = check{at: e.config.Clock.Now(), wrong: wrong}
	return wrong
}

// checkAge is how long an answer to the same question counts. A launcher that is open asks every few seconds.
const checkAge = time.Minute

// check is an answer of Slurm to whether it would take a session.
type check struct {
	at    time.Time
	wrong []session.FieldError
}

// known returns the answer to a question that was asked a short time ago.
func (p *Planner) known(asked string) (wrong []session.FieldError, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.checks, func(_ string, c check) bool { return p.engine.config.Clock.Since(c.at) > checkAge })
	found, ok := p.checks[asked]
	return found.wrong, ok
}

// refusalOf is what Slurm has refused, nothing if err is nil.
func refusalOf(err error) []session.FieldError {
	if err == nil {
		return nil
	}
	said := session.AsError(err, session.CodeEngineInvalid)
	if len(said.Fields) > 0 {
		return said.Fields
	}
	return []session.FieldError{{Field: fieldOf(said.Message), Kind: session.KindRange, Message: said.Message,
		Hint: said.Hint}}
}

// Script is the script of the job that a session would be. Its run has the name of a session that is not there yet.
func (p *Planner) Script(ctx context.Context, spec session.Spec) string {
	e, nodes := p.engine, max(1, spec.Cluster)
	terms, err := e.termsOf(ctx, spec)
	if err != nil {
		return ""
	}
	const id = "SESSION"
	dir := filepath.Join(e.runs.dir, id+"-1")
	r := request(terms, nodes, dir)
	r.Name, r.Comment = slurm.NameOf(id, 1), e.comment(id, 1)
	return r.Sbatch("# " + id + " is the id that the session gets. Slipway writes this folder before it submits the " +
		"job.\n" + call(dir, nodes))
}

// checkFile is a script that sbatch reads and does not run.
const checkFile = "check.sh"

// fieldOf is the field that a refusal of Slurm is about.
func fieldOf(said string) string {
	for _, about := range []struct{ words, field string }{
		{"account", "slurm.account"}, {"qos", "slurm.qos"}, {"partition name", "slurm.partition"},
		{"time limit", "slurm.time"}, {"feature", "slurm.constraint"}, {"reservation", "slurm.reservation"},
		{"generic resource", "accelerator"}, {"gres", "accelerator"}, {"memory", "resources.memory"},
		{"cpu count", "resources.cpu"}, {"node count", "cluster"}, {"partition", "slurm.partition"},
	} {
		if strings.Contains(strings.ToLower(said), about.words) {
			return about.field
		}
	}
	return "resources"
}
