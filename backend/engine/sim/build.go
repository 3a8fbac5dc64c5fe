package sim

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"time"

	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/gpu"
)

// A simulated build has one step for each line of the Dockerfile that does something.
const (
	buildStep = 700 * time.Millisecond
	buildSize = 60 * gpu.MiB // that each step adds
)

// Build implements [engine.Builder]. Nothing is run: the image is its base, with another name and more in it.
func (s *images) Build(ctx context.Context, b engine.Build, progress func(session.Build)) (session.Image, error) {
	if err := s.check(ctx); err != nil {
		return session.Image{}, err
	}
	var content bytes.Buffer
	if err := b.Context(ctx, &content); err != nil {
		return session.Image{}, err
	}
	lines, base, err := s.dockerfile(b, &content)
	if err != nil {
		return session.Image{}, err
	}
	var now session.Build
	for _, secret := range b.Secrets {
		now.Log += "simulated: the build can read the secret " + secret.Name + "\n"
	}
	for i, line := range lines {
		began := s.config.Clock.Now().UTC()
		step := session.BuildStep{Name: fmt.Sprintf("[%d/%d] %s", i+1, len(lines), line), State: session.WorkRunning,
			StartedAt: &began}
		progress(session.Build{Steps: append(now.Steps[:i:i], step), Log: now.Log})
		if err := s.pause(ctx, buildStep); err != nil {
			return session.Image{}, err
		}
		ended := s.config.Clock.Now().UTC()
		step.State, step.EndedAt = session.WorkDone, &ended
		now = session.Build{Steps: append(now.Steps[:i:i], step), Log: now.Log + "simulated: " + line + "\n"}
		progress(now)
	}
	made := session.Image{ID: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(b.Ref))), Refs: []string{b.Ref},
		Size: base.Size + gpu.Bytes(len(lines))*buildSize, CreatedAt: s.config.Clock.Now().UTC(), Arch: arch(),
		Labels: b.Labels}
	s.mu.Lock()
	s.keep(made)
	s.mu.Unlock()
	return made, s.save()
}

// dockerfile returns what the steps of a Dockerfile do, and the image that the last stage extends, if it is here.
func (s *images) dockerfile(b engine.Build, content io.Reader) (steps []string, base session.Image, err error) {
	files := tar.NewReader(content)
	for {
		header, err := files.Next()
		if err != nil {
			return nil, base, err
		}
		if header.Name == b.Dockerfile {
			break
		}
	}
	text, err := io.ReadAll(files)
	if err != nil {
		return nil, base, err
	}
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", " ")) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		switch strings.ToUpper(words[0]) {
		case "FROM":
			base, _ = s.find(words[1])
		case "RUN", "COPY", "ADD":
			steps = append(steps, strings.Join(words, " "))
		}
	}
	return steps, base, nil
}
