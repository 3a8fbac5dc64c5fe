package images

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"slipway/backend/engine"
	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
)

// send sends a request to a registry and returns the address that it names.
func send(t *testing.T, method, url, kind string, login *session.RegistryLogin, body []byte) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", kind)
	if login != nil {
		request.SetBasicAuth(login.User, login.Password)
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close() //nolint:errcheck // only read
	if said, err := io.ReadAll(reply.Body); err != nil || reply.StatusCode >= 300 {
		t.Fatalf("%s %s: %s, %s, %v", method, url, reply.Status, said, err)
	}
	return reply.Header.Get("Location")
}

// publish puts an image into a registry, with compressed layers and an index of platforms, and returns its name.
func (m made) publish(t *testing.T, addr, name string, login *session.RegistryLogin) string {
	t.Helper()
	base := "http://" + addr + "/v2/" + name
	blob := func(data []byte) descriptor {
		at := send(t, http.MethodPost, base+"/blobs/uploads/", "", login, nil)
		send(t, http.MethodPut, at+"&digest="+digestOf(data), "application/octet-stream", login, data)
		return descriptor{Digest: digestOf(data), Size: int64(len(data))}
	}
	read := func(part string) []byte {
		reader, err := m.content[part].Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	described := func(d descriptor, kind string) map[string]any {
		return map[string]any{"mediaType": kind, "digest": d.Digest, "size": d.Size}
	}
	var layers []any
	for _, layer := range m.parts.Layers {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		if _, err := w.Write(read(layer.Digest)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		layers = append(layers, described(blob(packed.Bytes()), "application/vnd.oci.image.layer.v1.tar+gzip"))
	}
	put := func(tag, kind string, content map[string]any) descriptor {
		content["schemaVersion"], content["mediaType"] = 2, kind
		data, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		if tag == "" {
			tag = digestOf(data)
		}
		send(t, http.MethodPut, base+"/manifests/"+tag, kind, login, data)
		return descriptor{Digest: digestOf(data), Size: int64(len(data))}
	}
	const kind = "application/vnd.oci.image.manifest.v1+json"
	one := described(put("", kind, map[string]any{"layers": layers, "config": described(blob(read(session.ImageConfig)),
		"application/vnd.oci.image.config.v1+json")}), kind)
	one["platform"] = map[string]string{"os": "linux", "architecture": runtime.GOARCH}
	put("1", "application/vnd.oci.image.index.v1+json", map[string]any{"manifests": []any{one}})
	return addr + "/" + name + ":1"
}

func TestAnImageIsPulledFromARegistry(t *testing.T) {
	s := open(t, t.TempDir())
	addr := enginetest.OpenRegistry(t, "", "")
	m := imageOf(t, "work:1", "base", "work")
	ref := m.publish(t, addr, "team/work", nil)
	var last session.Pull
	private, err := s.Pull(t.Context(), ref, engine.Login{}, func(p session.Pull) {
		if p.Current < last.Current || p.LayersDone < last.LayersDone {
			t.Errorf("progress goes back from %+v to %+v", last, p)
		}
		last = p
	})
	if err != nil || private {
		t.Fatalf("private %v, %v", private, err)
	}
	if last.LayersDone != 2 || last.Current != last.Total || last.Total == 0 {
		t.Errorf("the last progress is %+v", last)
	}
	if image, err := s.Image(t.Context(), ref); err != nil || image.ID != m.parts.ID {
		t.Errorf("it is %+v, %v", image, err)
	}
	// What is here is not fetched again, and the name moves to the newer image.
	newer := imageOf(t, "work:1", "base", "newer")
	newer.publish(t, addr, "team/work", nil)
	if _, err := s.Pull(t.Context(), ref, engine.Login{}, func(p session.Pull) { last = p }); err != nil {
		t.Fatal(err)
	}
	if image, err := s.Image(t.Context(), ref); err != nil || image.ID != newer.parts.ID || last.LayersDone != 2 {
		t.Errorf("it is %+v after %+v, %v", image, last, err)
	}
	for bad, code := range map[string]session.Code{addr + "/team/none:1": session.CodePullNotFound,
		"127.0.0.1:1/none:1": session.CodePullUnavailable, "UPPER CASE": session.CodeEngineInvalid,
		addr + "/team/work@" + m.parts.ID: session.CodeEngineUnsupported} {
		if _, err := s.Pull(t.Context(), bad, engine.Login{}, func(session.Pull) {}); session.CodeOf(err) != code {
			t.Errorf("%s: %v", bad, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	other := imageOf(t, "other:1", strings.Repeat("much ", 1<<20)).publish(t, addr, "team/other", nil)
	_, err = s.Pull(ctx, other, engine.Login{}, func(session.Pull) { cancel() })
	if session.CodeOf(err) != session.CodeEngineTimeout {
		t.Errorf("a pull that is cancelled: %v", err)
	}
	for _, name := range files(t, s) {
		if strings.HasSuffix(name, ".new") {
			t.Errorf("it leaves %s", name)
		}
	}
}

func TestAPrivateImageNeedsItsLogin(t *testing.T) {
	s := open(t, t.TempDir())
	login := &session.RegistryLogin{User: "ada", Password: "sec:ret"}
	login.Server = enginetest.OpenRegistry(t, login.User, login.Password)
	ref := imageOf(t, "work:1", "base").publish(t, login.Server, "team/private", login)
	wrong := *login
	wrong.Password = "wrong"
	for who, l := range map[string]*session.RegistryLogin{"nobody": nil, "a wrong password": &wrong} {
		_, err := s.Pull(t.Context(), ref, engine.Login{Own: l}, func(session.Pull) {})
		if session.CodeOf(err) != session.CodePullForbidden || strings.Contains(fmt.Sprint(err), "wrong") {
			t.Errorf("%s: %v", who, err)
		}
	}
	private, err := s.Pull(t.Context(), ref, engine.Login{Own: login}, func(session.Pull) {})
	if err != nil || !private {
		t.Errorf("with its login: private %v, %v", private, err)
	}
}
