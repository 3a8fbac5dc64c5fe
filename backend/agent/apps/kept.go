package apps

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"slipway/backend/guest/link"
	"slipway/backend/session"
)

const (
	unkeptLimit = time.Second
	writeLimit  = 20 * time.Second
	maxUnkept   = 64 << 10 // bytes of the answer
	maxNamed    = 3        // notebooks in one sentence
)

// keptText are the sentences about notebooks whose output is not kept, in the order in which they are shown.
var keptText = []struct {
	why link.Why
	say string
}{
	{link.WhyEncrypted, "notKeptEncrypted"},
	{link.WhyUnreadable, "notKeptUnreadable"},
	{link.WhyUnreachable, "notKeptUnreachable"},
}

// withKept returns app with what is known about the output of its notebooks: nothing unless the keeper answers.
func withKept(ctx context.Context, g Guest, app session.App, services []link.Service) session.App {
	keeps := slices.ContainsFunc(services, func(s link.Service) bool {
		return s.ID == keeperOf(app.ID) && s.State == link.ServiceReady
	})
	if !keeps || app.State != session.AppReady {
		return app
	}
	list, err := unkept(ctx, g, session.KeeperPort(app.Port))
	if err != nil {
		return app
	}
	app.Kept = true
	for _, text := range keptText {
		names := session.Phrase{Hole: "notebooks", Text: ", "}
		for _, one := range list {
			if one.Why == text.why {
				names.With = append(names.With, session.Phrase{Text: one.Notebook})
			}
		}
		if more := len(names.With) - maxNamed; more > 0 {
			names.With = append(names.With[:maxNamed], session.Phrase{Say: "more", Count: more})
		}
		if len(names.With) > 0 {
			app.NotKept = append(app.NotKept, session.Say(text.say, names))
		}
	}
	return app
}

// unkept asks the keeper on a port which notebooks' output it does not keep.
func unkept(ctx context.Context, g Guest, port int) ([]link.Unkept, error) {
	ctx, cancel := context.WithTimeout(ctx, unkeptLimit)
	defer cancel()
	status, body, err := askKeeper(ctx, g, port, link.UnkeptPath)
	if err == nil && status != http.StatusOK {
		err = errors.New("the keeper is too old") // it answers, but with nothing
	}
	if err != nil {
		return nil, err
	}
	return link.DecodeUnkept(body)
}

// askKeeper has the keeper on a port answer a request.
func askKeeper(ctx context.Context, g Guest, port int, path string) (status int, body []byte, err error) {
	conn, err := g.Dial(ctx, port)
	if err != nil {
		return 0, nil, err
	}
	defer conn.Close() //nolint:errcheck // it was only read
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.0\r\n\r\n", path); err != nil {
		return 0, nil, err
	}
	answer, err := http.ReadResponse(bufio.NewReader(io.LimitReader(conn, maxUnkept)), nil)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close() //nolint:errcheck // as above
	body, err = io.ReadAll(answer.Body)
	return answer.StatusCode, body, err
}

// WriteKept has the keepers of a session write what its notebooks without pages lack, before it is made an image. What
// they do not write in time is not lost: they write it later.
func (a *Apps) WriteKept(ctx context.Context, id session.ID) error {
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	g, _, err := a.session(ctx, id)
	if err != nil {
		return err
	}
	return writeKept(ctx, g)
}

func writeKept(ctx context.Context, g Guest) error {
	services, err := g.Services(ctx)
	if err != nil {
		return err
	}
	var failures []error
	for _, p := range programs {
		for _, s := range services {
			if s.ID != keeperOf(p.id) || s.State != link.ServiceReady {
				continue
			}
			status, _, err := askKeeper(ctx, g, session.KeeperPort(p.port), link.WritePath)
			if err == nil && status != http.StatusNoContent {
				err = fmt.Errorf("the keeper of %s answered with status %d", p.id, status)
			}
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}
