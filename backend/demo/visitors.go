package demo

import (
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"

	"slipway/backend/session"
)

// appToken is the name of the token of the application that uses the services of a story.
const appToken = "docs-search"

// questions are what its users ask.
var questions = []string{"What does a session need to start?", "How do I return to an earlier revision?",
	"Summarise this page in three sentences, for somebody who reads it on a phone.", "Translate it to Korean.",
	"Which folders does the notebook mount?"}

// UseServices asks the services of a story what users of an application would, until ctx ends. A service that does not
// answer, or whose token was revoked, is asked again all the same.
func UseServices(ctx context.Context, on session.Services, services []session.DeployRequest, m Machine) error {
	rng := rand.New(rand.NewPCG(m.Seed, 400))
	tokens := map[string]string{}
	for _, one := range services {
		token, err := newToken(ctx, on, one.Name)
		if err != nil {
			return err
		}
		tokens[one.Name] = token
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return on.DialService(ctx) }}}
	clock := m.Time.Clock()
	for len(services) > 0 {
		pause := min(5*time.Minute, 5*time.Second+time.Duration(rng.ExpFloat64()*float64(time.Minute)))
		if clock.Pause(ctx, pause) != nil {
			return nil // the demo has ended
		}
		service := services[rng.IntN(len(services))].Name
		askModel(ctx, client, service, tokens[service], questions[rng.IntN(len(questions))], rng.IntN(4) > 0)
	}
	return nil
}

// newToken makes the token of the application in place of that of an earlier run, whose text is stored nowhere.
func newToken(ctx context.Context, on session.Services, service string) (string, error) {
	list, err := on.ListServices(ctx)
	if err != nil {
		return "", err
	}
	for _, s := range list {
		for _, t := range s.Tokens {
			if s.Name == service && t.Name == appToken {
				if err := on.RevokeServiceToken(ctx, service, t.ID); err != nil {
					return "", err
				}
			}
		}
	}
	token, err := on.AddServiceToken(ctx, service, session.TokenRequest{Name: appToken})
	return token.Text, err
}

// askModel asks a question and reads the answer, if there is one.
func askModel(ctx context.Context, client *http.Client, service, token, question string, stream bool) {
	body, err := json.Marshal(map[string]any{"model": service, "stream": stream,
		"messages": []map[string]string{{"role": "user", "content": question}}})
	if err != nil {
		return
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/v1/chat/completions",
		strings.NewReader(string(body)))
	if err != nil {
		return
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(req)
	if err != nil {
		return
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
}
