package run

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/backend/demo"
	"slipway/backend/local"
	"slipway/backend/place"
	"slipway/backend/session"
)

func TestTheServiceOfTheStoryAnswers(t *testing.T) {
	now := time.Now()
	m := demo.Lab(demo.Options{Seed: 5, Story: demo.StoryLab})
	m.Fresh, m.Time = true, demo.Time{Speed: demo.MostSpeed, Real: now, Shown: now, First: now}
	l, err := local.Open(t.Context(), local.Config{Home: place.Home{Dir: t.TempDir()}, Engine: local.EngineSim,
		Demo: &m, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		if err := l.Run(ctx); ctx.Err() == nil {
			t.Error(err)
		}
	})
	defer func() {
		cancel()
		group.Wait()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	stories := demo.ServicesOnLab(demo.Options{Story: demo.StoryLab})
	for range 2 { // as when the demo is started again
		if err := demo.Deploy(ctx, l.Agent, stories); err != nil {
			t.Fatal(err)
		}
	}
	token, err := l.Agent.AddServiceToken(ctx, "assistant", session.TokenRequest{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		list, err := l.Agent.ListServices(ctx)
		if err != nil || len(list) != 1 || len(list[0].Revisions) != 1 || time.Now().After(end) {
			t.Fatalf("%+v, %v", list, err)
		}
		if list[0].State == session.ServiceReady {
			break
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return l.Agent.DialService(ctx) }}}
	for _, stream := range []string{"false", "true"} {
		ask, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/v1/chat/completions",
			strings.NewReader(`{"messages":[{"role":"user","content":"Hello"}],"model":"assistant",
				"stream":`+stream+`}`))
		if err != nil {
			t.Fatal(err)
		}
		ask.Header.Set("Authorization", "Bearer "+token.Text)
		ask.Header.Set("Content-Type", "application/json")
		answer, err := client.Do(ask)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.Body.Close() != nil || answer.StatusCode != http.StatusOK ||
			!strings.Contains(string(text), "simulated") ||
			strings.Contains(string(text), "[DONE]") != (stream == "true") {
			t.Errorf("it answers %d %s, %v", answer.StatusCode, text, err)
		}
	}
	list, err := l.Agent.ListServices(ctx)
	if err != nil || len(list) != 1 || list[0].Traffic.FirstWordMs < 1 {
		t.Errorf("the first word of a stream takes no time: %+v, %v", list, err)
	}
	group.Go(func() {
		if err := demo.UseServices(ctx, l.Agent, stories, m); err != nil {
			t.Error(err)
		}
	})
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		rows, err := l.Agent.ServiceAccounts(ctx, session.AccountSpan{From: now.Add(-time.Hour)})
		var all session.ServiceUse
		used := false
		for _, row := range rows {
			all.Add(row.ServiceUse)
			used = used || row.TokenName == "docs-search" && row.Answered > 0
		}
		if err != nil || time.Now().After(end) {
			t.Fatalf("no application uses it: %+v, %v", rows, err)
		}
		if used && all.WhPerThousandTokens() != nil {
			break
		}
	}
}
