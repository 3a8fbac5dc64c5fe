package server

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"html/template"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strings"
	"time"
)

// site serves the built user interface: files by their path, and index.html for every other path, because the interface
// routes those itself.
type site struct {
	assets fs.FS // nil: not built
	index  []byte
	policy string
}

// newSite reads index.html. Without it, the server shows a page that says so.
func newSite(assets fs.FS) *site {
	if assets == nil {
		return &site{}
	}
	index, _ := fs.ReadFile(assets, "index.html") // nil if it is missing
	return &site{assets: assets, index: index, policy: contentPolicy(index)}
}

var inlineScript = regexp.MustCompile(`(?s)<script(?:\s+type="[^"]*")?>(.*?)</script>`)

// contentPolicy allows only what the interface consists of. Inline scripts of index.html are allowed by their digests.
func contentPolicy(index []byte) string {
	scripts := "script-src 'self'"
	for _, match := range inlineScript.FindAllSubmatch(index, -1) {
		sum := sha256.Sum256(match[1])
		scripts += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return strings.Join([]string{
		"default-src 'self'", scripts, "style-src 'self' 'unsafe-inline'", "img-src 'self' data: blob:",
		"font-src 'self' data:", "connect-src 'self' ws://127.0.0.1:* ws://localhost:*", "worker-src 'self' blob:",
		"object-src 'none'", "base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'",
	}, "; ")
}

// ServeHTTP answers GET and HEAD.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET is possible here", http.StatusMethodNotAllowed)
		return
	}
	if s.index == nil {
		showPage(w, http.StatusNotFound, page{Title: "The user interface is not built in",
			Text: "This program was built without it. The API and the command line work.", Command: "make build"})
		return
	}
	name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
	if name != "" && name != "index.html" && s.serveFile(w, r, name) {
		return
	}
	if strings.HasPrefix(name, "assets/") || path.Ext(name) != "" &&
		!strings.Contains(r.Header.Get("Accept"), "text/html") {
		http.Error(w, "there is no such file", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Security-Policy", s.policy)
	s.serveBytes(w, r, "index.html", s.index)
}

// serveFile serves a file, which may be there only with .gz at its end, and reports whether it exists.
func (s *site) serveFile(w http.ResponseWriter, r *http.Request, name string) bool {
	data, err := fs.ReadFile(s.assets, name)
	if err != nil {
		if data, err = fs.ReadFile(s.assets, name+".gz"); err != nil {
			return false
		}
		w.Header().Set("Vary", "Accept-Encoding")
		if accepts(r, "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
		} else if data, err = unpacked(data); err != nil {
			return false
		}
	}
	if path.Ext(name) == ".html" {
		w.Header().Set("Content-Security-Policy", s.policy)
	}
	if strings.HasPrefix(name, "assets/") { // named by a digest of the content
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	s.serveBytes(w, r, name, data)
	return true
}

func unpacked(data []byte) ([]byte, error) {
	unpacker, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(unpacker)
}

func accepts(r *http.Request, encoding string) bool {
	for _, offer := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		name, quality, _ := strings.Cut(strings.TrimSpace(offer), ";")
		if name == encoding && strings.TrimSpace(quality) != "q=0" {
			return true
		}
	}
	return false
}

// serveBytes serves data, or 304 if the client has it already.
func (s *site) serveBytes(w http.ResponseWriter, r *http.Request, name string, data []byte) {
	kind := mime.TypeByExtension(path.Ext(name))
	switch path.Ext(name) { // often missing or wrong in a machine's own tables
	case ".js", ".mjs":
		kind = "text/javascript; charset=utf-8"
	case ".woff2":
		kind = "font/woff2"
	case ".webmanifest":
		kind = "application/manifest+json"
	}
	if kind != "" {
		w.Header().Set("Content-Type", kind)
	}
	if w.Header().Get("Cache-Control") == "" {
		w.Header().Set("Cache-Control", "no-cache")
	}
	sum := sha256.Sum256(data)
	w.Header().Set("ETag", `"`+hex.EncodeToString(sum[:8])+`"`)
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(data))
}

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
