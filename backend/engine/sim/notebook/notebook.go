// Package notebook is the notebook of a simulated session: it serves a page that runs Python in the browser, with
// access to the session's files. It listens on the session's own loopback, as Jupyter does, so that the server in front
// has already authorized its visitors.
package notebook

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"slipway/backend/files"
	"slipway/backend/pace"
)

// FS is the file system of a session, which confines all paths. Paths are absolute and clean.
type FS interface {
	files.Contents
	files.Names
}

// Config describes a notebook. Only the clock is optional.
type Config struct {
	Files FS
	Home  string      // the directory that it shows, absolute; nothing else is reached
	Page  fs.FS       // the built page; what ends with .gz is packed
	Clock *pace.Clock // by which kernels are used; nil: the clock on the wall
}

type server struct {
	config  Config
	tree    files.Tree
	kernels kernels
	saving  sync.Mutex // held while a file is compared with a version and replaced
}

// Handler serves a notebook.
func Handler(config Config) http.Handler {
	s := &server{config: config, tree: files.Tree{FS: files.Of(config.Files), Home: config.Home},
		kernels: kernels{clock: config.Clock}}
	api := http.NewServeMux()
	api.HandleFunc("GET /api", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"version": "1"})
	})
	api.HandleFunc("GET /api/kernels", s.kernels.list)
	api.HandleFunc("PUT /api/kernels/{id}", s.kernels.put)
	api.HandleFunc("DELETE /api/kernels/{id}", s.kernels.remove)
	api.HandleFunc("GET /api/list", s.list)
	api.HandleFunc("GET /api/contents", s.read)
	api.HandleFunc("PUT /api/contents", s.save)
	api.HandleFunc("GET /api/disk/{op}", s.ask)
	api.HandleFunc("POST /api/disk/{op}", s.change)
	api.Handle("GET /", page{config.Page})
	return http.NewCrossOriginProtection().Handler(secured(api))
}

// policy allows only the page's own scripts, WebAssembly, worker and requests. Content of notebooks may bring styles
// and pictures, but nothing from outside.
const policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; " +
	"style-src 'self' 'unsafe-inline'; " +
	"img-src 'self' data: blob:; font-src 'self' data:; frame-src 'self'; base-uri 'none'; form-action 'none'; " +
	"frame-ancestors 'none'"

// secured sets the headers of every answer. Shared memory, which interrupts a running cell, needs a page that is
// isolated from other origins.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp",
			"Cross-Origin-Resource-Policy": "same-origin",
		} {
			w.Header().Set(name, value)
		}
		next.ServeHTTP(w, r)
	})
}

// number reads a parameter that is not negative; absent: 0.
func number(r *http.Request, name string) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, errors.Join(fs.ErrInvalid, err)
	}
	return n, nil
}

type page struct{ files fs.FS }

// types are media types that systems disagree on.
var types = map[string]string{".wasm": "application/wasm", ".mjs": "text/javascript; charset=utf-8",
	".js": "text/javascript; charset=utf-8", ".zip": "application/zip", ".woff2": "font/woff2"}

// ServeHTTP implements [http.Handler]. Names of all files but the first page change with their content.
func (p page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
	// The addresses of Jupyter that name a file lead to the page, which reads the name behind the #.
	for _, at := range []string{"lab/tree/", "notebooks/"} {
		if file, ok := strings.CutPrefix(name, at); ok {
			http.Redirect(w, r, "/#"+(&url.URL{Path: file}).EscapedPath(), http.StatusFound)
			return
		}
	}
	caching := "public, max-age=31536000, immutable"
	if name == "" || name == "index.html" {
		name, caching = "index.html", "no-cache"
	}
	packed, data, err := p.read(name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	ext := path.Ext(name)
	kind := types[ext]
	if kind == "" {
		kind = mime.TypeByExtension(ext)
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", caching)
	if packed {
		w.Header().Set("Vary", "Accept-Encoding")
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
		} else if data, err = unpack(data); err != nil {
			http.Error(w, "the page is damaged", http.StatusInternalServerError)
			return
		}
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

// read returns a file as it is stored, and whether that is compressed.
func (p page) read(name string) (packed bool, data []byte, err error) {
	data, err = fs.ReadFile(p.files, name+".gz")
	if errors.Is(err, fs.ErrNotExist) {
		data, err = fs.ReadFile(p.files, name)
		return false, data, err
	}
	return true, data, err
}

func unpack(data []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the reader may have left
}
