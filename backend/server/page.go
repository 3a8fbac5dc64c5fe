package server

import (
	"html/template"
	"net/http"
)

// page is a small self-contained page for when there is no user interface or app to show.
type page struct {
	Title   string
	Text    string
	Command string // to run, may be empty
	Link    string // of the user interface, may be empty
	Retry   int    // seconds after which the page reloads itself; 0: never
}

var pageTemplate = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
{{if .Retry}}<meta http-equiv="refresh" content="{{.Retry}}">{{end}}
<title>{{.Title}} · Slipway</title>
<style>
:root{color-scheme:light dark;--text:#1c2733;--soft:#5b6875;--ground:#f5f7f9;
--card:#fff;--line:#dde3e8;--accent:#0b7285}
@media (prefers-color-scheme:dark){:root{
--text:#e3e8ec;--soft:#98a4af;--ground:#12181d;--card:#1a2229;--line:#2b353e;--accent:#4fb6c8}}
body{margin:0;min-height:100vh;display:grid;place-items:center;
background:var(--ground);color:var(--text);font:14px/1.5 system-ui,sans-serif}
main{max-width:420px;margin:24px;padding:32px;background:var(--card);border:1px solid var(--line);border-radius:8px}
h1{margin:0 0 8px;font-size:18px}p{margin:0 0 16px;color:var(--soft)}
code{display:block;padding:8px 12px;background:var(--ground);border:1px solid var(--line);
border-radius:4px;font:13px ui-monospace,monospace;user-select:all}
a{color:var(--accent)}
</style></head><body><main><h1>{{.Title}}</h1><p>{{.Text}}</p>
{{if .Command}}<p><code>{{.Command}}</code></p>{{end}}{{if .Link}}<a href="{{.Link}}">Open Slipway</a>{{end}}
</main></body></html>
`))

var forwardTemplate = template.Must(template.New("forward").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="refresh" content="0;url={{.}}"><title>Slipway</title></head>
<body><a href="{{.}}">Continue</a></body></html>
`))

const pagePolicy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; " +
	"frame-ancestors 'none'"

func pageHeaders(w http.ResponseWriter) {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Security-Policy", pagePolicy)
	header.Set("Referrer-Policy", "no-referrer")
}

func showPage(w http.ResponseWriter, status int, p page) {
	pageHeaders(w)
	w.WriteHeader(status)
	_ = pageTemplate.Execute(w, p)
}

// forward sends a page that opens path. After a redirect a browser would count the page that it came from as the
// initiator and not send a strict cookie.
func forward(w http.ResponseWriter, path string) {
	pageHeaders(w)
	w.WriteHeader(http.StatusOK)
	_ = forwardTemplate.Execute(w, path)
}
