// Package notebook is the notebook program of a simulated session: it serves a page in which Python runs in the
// browser, and lends that Python the files of the session. It stands on the session's own loopback, as Jupyter does in
// a real one, so that whoever comes has been let in by the server in front.
package notebook

import (
	"errors"
	"io/fs"
	"net/http"
	"strconv"
	"sync"

	"slipway/backend/files"
	"slipway/backend/pace"
)

// FS is the file system of a session. Paths are absolute and clean; what they lead to, and that it is inside the
// session, is up to the file system.
type FS interface {
	files.Contents
	files.Names
	Readlink(path string) (string, error)
	Symlink(target, path string) error
	Chmod(path string, mode fs.FileMode) error
}

// Config describes a notebook. All of it but the clock is required.
type Config struct {
	Files FS
	Home  string      // the directory that it shows, absolute; nothing else is reached
	Page  fs.FS       // the built page; what ends with .gz is packed
	Clock *pace.Clock // by which kernels are used; nil: the clock on the wall
}

// server answers for one notebook.
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

// policy lets the page do what it must and nothing else: its own scripts and WebAssembly, its own worker, and requests
// to where it came from. What a notebook shows may bring styles and pictures along, but nothing from outside.
const policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; " +
	"style-src 'self' 'unsafe-inline'; " +
	"img-src 'self' data: blob:; font-src 'self' data:; frame-src 'self'; base-uri 'none'; form-action 'none'; " +
	"frame-ancestors 'none'"

// secured sets what holds for every answer. Shared memory, by which a running cell is interrupted, needs a page that no
// other origin has a part in.
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

// number reads a number of a request's address that is not below zero; absent: 0.
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
