//go:build linux

package docker_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/image"
)

// registry is a registry on the loopback with one image, whose faults a test
// can cause. Docker speaks plain HTTP to the loopback.
type registry struct {
	server *httptest.Server
	ref    string
	size   int64 // of all layers

	mu       sync.Mutex // guards everything below
	blobs    map[string][]byte
	manifest []byte
	login    string        // user:password that is wanted; empty: none
	status   int           // answer to everything but the version check; 0: as usual
	delay    time.Duration // before each layer
	stall    chan struct{} // layers wait for it after their first part; nil: they do not
}

const mediaType = "application/vnd.docker.distribution.manifest.v2+json"

func newRegistry(t *testing.T, layers int, layerSize int) *registry {
	t.Helper()
	r := &registry{blobs: map[string][]byte{}}
	r.server = httptest.NewServer(r)
	t.Cleanup(func() {
		r.server.CloseClientConnections()
		r.server.Close()
	})
	r.ref = fmt.Sprintf("%s/slipway-%s:1", strings.TrimPrefix(r.server.URL, "http://"),
		strings.ToLower(rand.Text()[:8]))
	var described []map[string]any
	var diffs []string
	for i := range layers {
		plain, packed := layer(t, i, layerSize)
		diffs = append(diffs, digest(plain))
		described = append(described, map[string]any{"mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip",
			"size": len(packed), "digest": r.put(packed)})
		r.size += int64(len(packed))
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "created": "2024-05-01T10:00:00Z",
		"config": map[string]any{"Labels": map[string]string{"kind": "test"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": diffs},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.manifest, err = json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": mediaType, "layers": described,
		"config": map[string]any{"mediaType": "application/vnd.docker.container.image.v1+json", "size": len(config),
			"digest": r.put(config)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { evict(t, r.ref) })
	return r
}

// evict removes an image from the daemon, if it is there.
func evict(t *testing.T, ref string) {
	api(t).ImageRemove(context.Background(), ref,
		image.RemoveOptions{Force: true, PruneChildren: true}) //nolint:errcheck // it may not be there
}

func layer(t *testing.T, number, size int) (plain, packed []byte) {
	t.Helper()
	noise := make([]byte, size)
	rand.Read(noise) //nolint:errcheck // never fails
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := w.WriteHeader(&tar.Header{Name: "file" + strconv.Itoa(number), Mode: 0o644,
		Size: int64(size)}); err != nil {
		t.Fatal(err)
	}
	w.Write(noise) //nolint:errcheck // a buffer takes everything
	w.Close()      //nolint:errcheck // a buffer takes everything
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write(archive.Bytes()) //nolint:errcheck // a buffer takes everything
	z.Close()                //nolint:errcheck // a buffer takes everything
	return archive.Bytes(), zipped.Bytes()
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (r *registry) put(blob []byte) string {
	name := digest(blob)
	r.blobs[name] = blob
	return name
}

// set changes how the registry behaves.
func (r *registry) set(change func(*registry)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r)
}

func (r *registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	login, status, stall, delay := r.login, r.status, r.stall, r.delay
	r.mu.Unlock()
	user, password, _ := req.BasicAuth()
	switch {
	case login != "" && user+":"+password != login:
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		complain(w, http.StatusUnauthorized, "UNAUTHORIZED", "authentication required")
	case req.URL.Path == "/v2/":
		w.WriteHeader(http.StatusOK)
	case status != 0:
		complain(w, status, map[int]string{429: "TOOMANYREQUESTS", 403: "DENIED"}[status], http.StatusText(status))
	case strings.HasSuffix(req.URL.Path, "/manifests/1"), strings.Contains(req.URL.Path, "/manifests/sha256:"):
		w.Header().Set("Content-Type", mediaType)
		w.Header().Set("Docker-Content-Digest", digest(r.manifest))
		w.Write(r.manifest) //nolint:errcheck // the daemon may have gone
	case strings.Contains(req.URL.Path, "/blobs/"):
		time.Sleep(delay)
		r.serveBlob(w, req, stall)
	default:
		complain(w, http.StatusNotFound, "MANIFEST_UNKNOWN", "manifest unknown")
	}
}

func (r *registry) serveBlob(w http.ResponseWriter, req *http.Request, stall chan struct{}) {
	blob, ok := r.blobs[req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:]]
	if !ok {
		complain(w, http.StatusNotFound, "BLOB_UNKNOWN", "blob unknown")
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(blob)))
	if stall != nil && len(blob) > 4096 {
		w.Write(blob[:len(blob)/2]) //nolint:errcheck // the daemon may have gone
		w.(http.Flusher).Flush()
		select {
		case <-stall:
		case <-req.Context().Done():
			return
		}
		blob = blob[len(blob)/2:]
	}
	w.Write(blob) //nolint:errcheck // the daemon may have gone
}

func complain(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).
		Encode(map[string]any{"errors": []map[string]string{
			{"code": code, "message": message}}}) //nolint:errcheck // the daemon may have gone
}
