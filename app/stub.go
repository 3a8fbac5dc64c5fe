//go:build desktop

package app

import (
	"encoding/json"
	"html/template"
	"net/http"
)

// stubPage is all that the window's own origin ever shows: the colours of the shell, so that nothing flashes, and a
// step to where the interface lives.
var stubPage = template.Must(template.New("stub").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Slipway</title>
<style>html{background:#f6f8fa}@media(prefers-color-scheme:dark){html{background:#0f1419}}</style></head>
<body><script>location.replace({{.}})</script></body></html>
`))

// stub serves the page that goes to target.
func stub(target string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		if err := stubPage.Execute(w, target); err != nil {
			http.Error(w, "the first page could not be written", http.StatusInternalServerError)
		}
	})
}

// quoteJS writes text as a JavaScript string.
func quoteJS(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		return `""`
	}
	return string(quoted)
}
