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
	"path"
	"strings"
	"time"
)

// page serves the files of the built page.
type page struct{ files fs.FS }

// types are media types that systems disagree on.
var types = map[string]string{".wasm": "application/wasm", ".mjs": "text/javascript; charset=utf-8",
	".js": "text/javascript; charset=utf-8", ".zip": "application/zip", ".woff2": "font/woff2"}

// ServeHTTP implements [http.Handler]. Names of all files but the first page change with their content.
func (p page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
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
	_ = json.NewEncoder(w).Encode(body) // nobody is left to tell
}
