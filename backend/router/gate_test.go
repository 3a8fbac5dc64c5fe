package router

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(manner{}, "a", "b")
		chat, other := public("a"), public("b")
		late := token("late", "late")
		late.Expires = time.Now().Add(time.Hour)
		chat.Public, chat.Tokens = false, []Token{token("t1", "one"), late}
		other.Name, other.Models, other.Public, other.Tokens = "other", []string{"o"}, false,
			[]Token{token("t2", "two")}
		w.router.Set([]Service{chat, other})
		check := func(name, want string, headers ...string) {
			t.Helper()
			got := w.post(plain, headers...)
			if want == "200" && plainError(got, 8) == nil {
				return
			}
			if got.code() != want {
				t.Errorf("%s: %s, want %s", name, got.code(), want)
			}
		}
		check("a bearer token", "200", "Authorization", "Bearer one")
		check("the scheme in lower case", "200", "Authorization", "bearer one")
		check("x-api-key", "200", "X-Api-Key", "one")
		check("no token", "401 invalid_api_key")
		check("another scheme", "401 invalid_api_key", "Authorization", "Basic one")
		check("an empty token", "401 invalid_api_key", "Authorization", "Bearer ")
		check("a wrong token", "401 invalid_api_key", "X-Api-Key", "eno")
		check("the token of another service", "404 model_not_found", "X-Api-Key", "two")
		check("a token that expires later", "200", "X-Api-Key", "late")
		time.Sleep(time.Hour)
		check("a token that expired", "401 invalid_api_key", "X-Api-Key", "late")
		if got := w.do(t.Context(), "GET", "/services/chat/x", nil, "X-Api-Key", "two").code(); got != "404 not_found" {
			t.Errorf("another service by name: %s", got)
		}
		if got := w.do(t.Context(), "GET", "/services/chat/x", nil).code(); got != "401 invalid_api_key" {
			t.Errorf("a service by name without a token: %s", got)
		}
		chat.Tokens = chat.Tokens[1:]
		w.router.Set([]Service{chat, other})
		check("a revoked token", "401 invalid_api_key", "X-Api-Key", "one")
		open := public("a")
		open.Name, open.Models = "open", []string{"m", "p"}
		w.router.Set([]Service{chat, other, open})
		check("a public service of the same model", "200")
		check("and a token that is not its own", "200", "X-Api-Key", "sk-anything")
		w.router.Set([]Service{other, open})
		if got := w.post(`{"model":"o"}`).code(); got != "401 invalid_api_key" {
			t.Errorf("another service where one is public: %s", got)
		}
		if one := w.accounts(16)[0]; one.Token != "t1" {
			t.Errorf("the record is %+v", one)
		}
	})
}

func TestLimitsOfTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(manner{}, "a")
		rated, few := token("rated", "rated"), token("few", "few")
		rated.Rate, few.Concurrent = 3, 2
		s := public("a")
		s.Public, s.Tokens = false, []Token{rated, few}
		w.router.Set([]Service{s})
		for i := range 5 {
			got := w.post(plain, "X-Api-Key", "rated")
			if i < 3 != (plainError(got, 8) == nil) {
				t.Errorf("request %d of 3 a minute is %s", i+1, got.code())
			}
			if i >= 3 && (got.code() != "429 rate_limit_exceeded" || got.header.Get("Retry-After") != "20") {
				t.Errorf("request %d is %s, Retry-After %q", i+1, got.code(), got.header.Get("Retry-After"))
			}
		}
		time.Sleep(20 * time.Second)
		if err := plainError(w.post(plain, "X-Api-Key", "rated"), 8); err != nil {
			t.Errorf("20 s later: %v", err)
		}
		w.fakes["a"].behave(manner{first: time.Second})
		results := make(chan reply, 3)
		for range 3 {
			go func() { results <- w.post(plain, "X-Api-Key", "few") }()
		}
		if got := <-results; got.code() != "429 rate_limit_exceeded" || got.header.Get("Retry-After") != "1" {
			t.Errorf("a third request at a time is %s", got.code())
		}
		for range 2 {
			if err := plainError(<-results, 8); err != nil {
				t.Error(err)
			}
		}
		if err := plainError(w.post(plain, "X-Api-Key", "few"), 8); err != nil {
			t.Errorf("one later: %v", err)
		}
		limited := 0
		for _, one := range w.accounts(10) {
			if one.Outcome == OutcomeLimited && one.Status == 429 && one.Replica == "" {
				limited++
			}
		}
		if limited != 3 {
			t.Errorf("%d requests are accounted for as limited", limited)
		}
	})
}

func TestPagesOfOtherOriginsAreRefused(t *testing.T) {
	w := newWorld(t)
	w.start(manner{}, "a")
	w.router.Set([]Service{public("a")})
	for _, c := range []struct {
		headers string
		want    string
	}{
		{"Host=127.0.0.1:9000", "200 <nil>"},
		{"Host=[::1]:9000", "200 <nil>"},
		{"Host=localhost", "200 <nil>"},
		{"Host=LAB.example:443", "200 <nil>"},
		{"Host=evil.example", "403 forbidden_host"},
		{"Host=10.0.0.1", "403 forbidden_host"},
		{"Host=127.0.0.1.evil.example", "403 forbidden_host"},
		{"Origin=http://127.0.0.1:9000", "200 <nil>"},
		{"Origin=http://127.0.0.1:9001", "403 forbidden_origin"},
		{"Origin=https://evil.example", "403 forbidden_origin"},
		{"Origin=null", "403 forbidden_origin"},
		{"Sec-Fetch-Site=cross-site", "403 forbidden_origin"},
		{"Sec-Fetch-Site=same-origin", "200 <nil>"},
	} {
		name, value, _ := strings.Cut(c.headers, "=")
		got := w.post(plain, name, value)
		if got.code() != c.want {
			t.Errorf("%s is %s, want %s", c.headers, got.code(), c.want)
		}
		if got.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s gets headers that permit another origin", c.headers)
		}
	}
	preflight := w.do(t.Context(), "OPTIONS", "/v1/chat/completions", nil, "Origin", "https://evil.example")
	if preflight.code() != "403 forbidden_origin" {
		t.Errorf("a preflight request is %s", preflight.code())
	}
	w.accounts(14)
}
