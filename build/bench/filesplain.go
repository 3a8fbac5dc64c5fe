package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"slipway/build/bench/measure"
)

// hopBytes is the buffer size of this program's copies.
const hopBytes = 256 << 10

// plainly is a minimal HTTP server that sends a file of its directory, or writes one and syncs it. It checks nothing.
type plainly struct {
	ctx context.Context //nolint:containedctx // of the one measurement
	dir string
	url string
	web *http.Server
}

func startPlainly(ctx context.Context, dir string) *plainly {
	listener := measure.Get((&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0"))
	p := &plainly{ctx: ctx, dir: dir, url: "http://" + listener.Addr().String()}
	p.web = &http.Server{Handler: http.HandlerFunc(p.serve)} //nolint:gosec // it serves this program alone
	go p.web.Serve(listener)                                 //nolint:errcheck // its requests tell what fails
	return p
}

const plainPage = `<!doctype html><title>plain</title><input type="file"><a href="/` + copiedName +
	`" download>fetch</a>
<script>const send = async () => (await fetch('/sent.bin',
  { method: 'PUT', body: document.querySelector('input').files[0] })).status</script>`

func (p *plainly) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/" {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, plainPage) // a browser that does not hear it says so
		return
	}
	name := filepath.Join(p.dir, filepath.Base(r.URL.Path))
	if r.Method == http.MethodGet {
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeFile(w, r, name)
		return
	}
	if err := writeDown(name, 0, r.Body); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// fetch downloads a file.
func (p *plainly) fetch(name, to string) {
	body := p.do(http.MethodGet, name, nil)
	defer body.Close()
	measure.OK(writeDown(to, 0, body))
}

// do makes a request and returns the body of the answer. file is the body of the request, which closes it.
func (p *plainly) do(method, name string, file *os.File) io.ReadCloser {
	req := measure.Get(http.NewRequestWithContext(p.ctx, method, p.url+"/"+name, nil))
	if file != nil {
		req.Body, req.ContentLength = file, copiedBytes
	}
	resp, err := http.DefaultClient.Do(req) //nolint:bodyclose // the caller closes it
	measure.OK(err)
	if resp.StatusCode != http.StatusOK {
		measure.OK(fmt.Errorf("%s %s: %s", method, name, resp.Status), resp.Body.Close())
	}
	return resp.Body
}

// writeDown writes to a file from an offset and syncs it.
func writeDown(name string, at int64, from io.Reader) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it is synced
	if _, err := file.Seek(at, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.CopyBuffer(struct{ io.Writer }{file}, from, make([]byte, hopBytes)); err != nil {
		return err
	}
	return file.Sync()
}
