package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"slipway/backend/api"
	"slipway/backend/session"
)

// chats are conversations of the person's own pages and command line with models. They need no token of the person's:
// the server makes one for each service and renews it.
type chats struct {
	mu     sync.Mutex // guards tokens
	tokens map[string]session.NewToken
}

const (
	chatToken    = "playground"
	chatLifetime = session.Duration(24 * time.Hour)
	chatSpare    = time.Hour // a token that expires sooner is renewed
)

// completion is the request that a model understands.
type completion struct {
	Model         string            `json:"model"`
	Messages      []api.ChatMessage `json:"messages"`
	MaxTokens     int               `json:"max_tokens,omitempty"`
	Temperature   *float64          `json:"temperature,omitempty"`
	TopP          *float64          `json:"top_p,omitempty"`
	Seed          *int64            `json:"seed,omitempty"`
	Stream        bool              `json:"stream"`
	StreamOptions map[string]bool   `json:"stream_options"`
}

func (s serviceRoutes) chat(w http.ResponseWriter, r *http.Request) error {
	var in api.Chat
	if err := decode(r, &in); err != nil {
		return err
	}
	name := r.PathValue("service")
	agent, service, err := s.hub.FindService(r.Context(), name, r.FormValue("agent"))
	if err != nil {
		return err
	}
	if err := resting(service); err != nil {
		return err
	}
	token, err := s.chats.token(r.Context(), agent, service)
	if err != nil {
		return err
	}
	answer, err := ask(r.Context(), agent, name, token, completion{Model: service.ModelNames()[0],
		Messages: in.Messages, MaxTokens: in.MaxTokens, Temperature: in.Temperature, TopP: in.TopP, Seed: in.Seed,
		Stream: true, StreamOptions: map[string]bool{"include_usage": true}})
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return refusedChat(answer)
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	copyFlushing(w, answer.Body)
	return nil
}

// resting returns an error for a service that only a person starts: a request would wait in vain.
func resting(service session.Service) error {
	switch service.State {
	case session.ServiceStopped, session.ServiceStopping:
		return session.Because(session.CodeSessionConflict,
			session.Say("serviceStopped", session.Fill("name", service.Name)),
			session.Say("serviceStoppedHint")).Failure(nil)
	case session.ServiceFailed:
		return session.Because(session.CodeSessionConflict,
			session.Say("serviceFailed", session.Fill("name", service.Name)),
			session.Say("serviceFailedHint")).Failure(nil)
	}
	return nil
}

// ask sends a request to a service of an agent.
func ask(ctx context.Context, agent session.Agent, service, token string, c completion) (*http.Response, error) {
	conn, err := agent.DialService(ctx)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/services/"+service+
		"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	transport := &http.Transport{DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}
	answer, err := transport.RoundTrip(req)
	if err != nil {
		_ = conn.Close()
		return nil, session.WrapError(err, session.CodeAppTimeout, "The service does not answer.",
			"Look at the state of the service.")
	}
	return answer, nil
}

// token returns a token for a service.
func (c *chats) token(ctx context.Context, agent session.Agent, service session.Service) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := service.Agent + "/" + service.Name
	known, found := c.tokens[key]
	if found && slices.ContainsFunc(service.Tokens, func(t session.ServiceToken) bool {
		return t.ID == known.ID && time.Until(t.ExpiresAt) > chatSpare
	}) {
		return known.Text, nil
	}
	made, err := agent.AddServiceToken(ctx, service.Name,
		session.TokenRequest{Name: chatToken, Lifetime: chatLifetime})
	if err != nil {
		return "", err
	}
	if c.tokens == nil {
		c.tokens = map[string]session.NewToken{}
	}
	c.tokens[key] = made
	return made.Text, nil
}

// refusedChat is the error of an answer in OpenAI's form.
func refusedChat(answer *http.Response) error {
	var said struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	data, _ := io.ReadAll(io.LimitReader(answer.Body, 64<<10)) // what there is explains something
	if json.Unmarshal(data, &said) != nil || said.Error.Message == "" {
		said.Error.Message = "The service answered with " + answer.Status + "."
	}
	return session.NewError(session.CodeAppTimeout, session.Clip(said.Error.Message),
		"Look at the state of the service.")
}
