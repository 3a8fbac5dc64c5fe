package enginetest

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"slipway/backend/engine"
	"slipway/backend/session"
)

var streamCases = []engineCase{
	{"an image that is there is described and listed", func(s *suite) {
		image, err := s.engine.Image(s.ctx, s.Image)
		s.ok(err)
		if image.ID == "" || !slices.Contains(image.Refs, s.Image) || image.Size <= 0 || image.Arch == "" {
			s.Errorf("want an id, the reference, a size and an architecture, got %+v", image)
		}
		pinned, err := s.engine.Image(s.ctx, s.Image+"@"+image.ID)
		if err != nil || pinned.ID != image.ID {
			s.Errorf("by its id behind its name it is %q (%v), want %q", pinned.ID, err, image.ID)
		}
		s.wantCode(failure(s.engine.Image(s.ctx, s.Image+"@sha256:"+strings.Repeat("0", 64))), session.CodeNoImage)
		images, err := s.engine.Images(s.ctx)
		s.ok(err)
		if !slices.ContainsFunc(images, func(other session.Image) bool {
			return other.ID == image.ID && slices.Contains(other.Refs, s.Image)
		}) {
			s.Errorf("%s is not among the %d images listed", s.Image, len(images))
		}
	}},
	{"an image that is not there is not-found", func(s *suite) {
		s.wantCode(failure(s.engine.Image(s.ctx, noImage)), session.CodeNoImage)
	}},
	{"pull of an image nobody has is not-found", func(s *suite) {
		_, err := s.engine.Pull(s.ctx, noImage, engine.Login{}, func(session.Pull) {})
		switch code := session.CodeOf(err); code {
		// Some engines reach no registry, and some registries hide what they lack.
		case session.CodePullNotFound, session.CodePullUnavailable, session.CodePullForbidden:
		default:
			s.Errorf("got code %q (%v), want engine_pull_not-found", code, err)
		}
	}},
	{"pull tells of progress that never goes back", func(s *suite) {
		s.Evict(s.T, s.PullImage)
		if _, err := s.engine.Image(s.ctx, s.PullImage); session.CodeOf(err) != session.CodeNoImage {
			s.Fatalf("the image is there before the pull: %v", err)
		}
		var steps []session.Pull
		if _, err := s.engine.Pull(s.ctx, s.PullImage, engine.Login{},
			func(p session.Pull) { steps = append(steps, p) }); err != nil {
			s.Fatal(err)
		}
		if len(steps) == 0 {
			s.Fatal("no progress was told")
		}
		var last session.Pull
		for i, p := range steps {
			if p.Current < last.Current || p.Total < last.Total || p.LayersDone < last.LayersDone {
				s.Errorf("progress went back at step %d: %+v after %+v", i, p, last)
			}
			if p.Total > 0 && p.Current > p.Total || p.LayersDone > p.Layers || p.Rate < 0 {
				s.Errorf("progress beyond its end at step %d: %+v", i, p)
			}
			last = p
		}
		if _, err := s.engine.Image(s.ctx, s.PullImage); err != nil {
			s.Errorf("the image is not there after the pull: %v", err)
		}
	}},
	{"pull stops with its context", func(s *suite) {
		s.Evict(s.T, s.PullImage)
		ctx, cancel := context.WithCancel(s.ctx)
		defer cancel()
		s.wantCancelled("Pull", failure(s.engine.Pull(ctx, s.PullImage, engine.Login{},
			func(session.Pull) { cancel() })))
		if _, err := s.engine.Image(s.ctx, s.PullImage); session.CodeOf(err) != session.CodeNoImage {
			s.Errorf("the image is there after a pull that was given up (%v)", err)
		}
	}},
	{"logs come in order", func(s *suite) {
		id := s.start(commandPrint)
		s.ended(id)
		s.wantText(s.readLogs(id, session.LogOptions{}), printed(1, 10))
		s.wantCode(failure(s.engine.Logs(s.ctx, "nonexistent", session.LogOptions{})), session.CodeNoContainer)
	}},
	{"logs keep only the tail asked for", func(s *suite) {
		id := s.start(commandPrint)
		s.ended(id)
		s.wantText(s.readLogs(id, session.LogOptions{Tail: 3}), printed(8, 10))
		s.wantText(s.readLogs(id, session.LogOptions{Tail: 100}), printed(1, 10))
	}},
	{"logs begin with times when asked to", func(s *suite) {
		before := time.Now().Add(-time.Minute)
		id := s.start(commandPrint)
		s.ended(id)
		lines := strings.Split(strings.TrimSuffix(s.readLogs(id, session.LogOptions{Timestamps: true}), "\n"), "\n")
		for i, line := range lines {
			stamp, text, _ := strings.Cut(line, " ")
			at, err := time.Parse(time.RFC3339Nano, stamp)
			if err != nil || at.Before(before) || text != fmt.Sprintf("line %d", i+1) {
				s.Errorf("line %d is %q, want an RFC 3339 time and its text (%v)", i+1, line, err)
			}
		}
		if len(lines) != 10 {
			s.Errorf("got %d lines, want 10", len(lines))
		}
	}},
	{"followed logs end with the container", func(s *suite) {
		id := s.start(commandDrip)
		s.wantText(s.readLogs(id, session.LogOptions{Follow: true}), "drip 1\ndrip 2\ndrip 3\n")
		s.ended(id)
		s.wantText(s.readLogs(id, session.LogOptions{Follow: true}), "drip 1\ndrip 2\ndrip 3\n")
	}},
	{"followed logs end with their context", func(s *suite) {
		id := s.start(commandSleep)
		ctx, cancel := context.WithCancel(s.ctx)
		reader, err := s.engine.Logs(ctx, id, session.LogOptions{Follow: true})
		s.ok(err)
		defer reader.Close() //nolint:errcheck // what it held is given up
		done := make(chan error, 1)
		go func() { done <- failure(io.Copy(io.Discard, reader)) }()
		cancel()
		s.ends("the log", done) //nolint:errcheck // only its end matters
	}},
	{"guest of an ended container is guest_exited", func(s *suite) {
		id := s.start(commandExit)
		s.ended(id)
		conn, err := s.engine.Guest(s.ctx, id)
		if err == nil {
			conn.Close() //nolint:errcheck // it should not be there
		}
		s.wantCode(err, session.CodeGuestExited)
	}},
	{"guest of a container that is not started waits", func(s *suite) {
		id := s.create(s.container(""))
		ctx, cancel := context.WithTimeout(s.ctx, 100*time.Millisecond)
		defer cancel()
		s.wantCancelled("Guest", failure(s.engine.Guest(ctx, id)))
	}},
}

func (s *suite) readLogs(id string, opts session.LogOptions) string {
	s.Helper()
	reader, err := s.engine.Logs(s.ctx, id, opts)
	s.ok(err)
	defer reader.Close() //nolint:errcheck // read to its end
	text, err := io.ReadAll(reader)
	s.ok(err)
	return string(text)
}

func printed(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

func (s *suite) wantText(got, want string) {
	s.Helper()
	if got != want {
		s.Errorf("got %q, want %q", got, want)
	}
}
