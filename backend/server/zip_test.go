package server_test

import (
	"archive/zip"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"slipway/backend/api"
	"slipway/backend/session"
)

func TestSeveralFilesAreReadAsOneArchive(t *testing.T) {
	w, root := startWithFiles(t)
	f, err := w.agent.CreateFolder(t.Context(), session.FolderRequest{Name: "data"})
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"a/deep", "b"} {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"a/deep/one": "1", "a/same": "2", "b/same": "3", "line\nbreak": "4",
		`b/..\..\evil`: "5"} {
		if err := root.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := root.Symlink("a/same", "a/link"); err != nil {
		t.Fatal(err)
	}
	base := "/api/v1/folders/" + string(f.ID) + "/files/zip?"
	read := func(query string) (map[string]string, *http.Response) {
		t.Helper()
		response, body := do(t, http.DefaultClient, w.request(t, "GET", base+query, ""))
		if response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %s", query, response.Status, body)
		}
		archive, err := zip.NewReader(strings.NewReader(body), int64(len(body)))
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		for _, file := range archive.File {
			from, err := file.Open()
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(from)
			if err != nil {
				t.Fatal(err)
			}
			found[file.Name] = string(text)
		}
		return found, response
	}
	all, response := read("path=&name=data")
	if len(all) != 8 || all["b/.._.._evil"] != "5" || all["a/deep/one"] != "1" || all["line_break"] != "4" {
		t.Errorf("all of it: %q", all)
	}
	if got := response.Header.Get("Content-Disposition"); got != `attachment; filename=data.zip` {
		t.Error(got)
	}
	if some, _ := read("path=a%2Fsame&path=b%2Fsame"); len(some) != 2 || some["same"] != "2" ||
		some["same (2)"] != "3" {
		t.Errorf("two of one name: %q", some)
	}
	for query, status := range map[string]int{"path=none": 404, "": 400} {
		if response, body := do(t, http.DefaultClient,
			w.request(t, "GET", base+query, "")); response.StatusCode != status {
			t.Errorf("%q: %s %s", query, response.Status, body)
		}
	}
}

func TestAnArchiveIsAnOperationThatCanBeCancelled(t *testing.T) {
	w, root := startWithFiles(t)
	f, err := w.agent.CreateFolder(t.Context(), session.FolderRequest{Name: "data"})
	if err != nil {
		t.Fatal(err)
	}
	file, err := root.Create("endless") // more than any buffer on the way holds, and all of it noise
	if err != nil {
		t.Fatal(err)
	}
	const size = 256 << 20
	if _, err := io.CopyN(file, rand.NewChaCha8([32]byte{}), size); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(
		w.request(t, "GET", "/api/v1/folders/"+string(f.ID)+"/files/zip?path=endless", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.CopyN(io.Discard, response.Body, 1<<20); err != nil {
		t.Fatal(err)
	}
	operation := func() (op api.Operation) {
		t.Helper()
		var all []api.Operation
		if w.call(t, "GET", "/api/v1/operations", "", &all); len(all) != 1 {
			t.Fatalf("%+v", all)
		}
		return all[0]
	}
	op := operation()
	for op.Progress == nil || op.Progress.Total == 0 || op.Progress.Done == 0 {
		op = operation()
	}
	if op.Kind != "file-archive" || op.Subject != "endless.zip" || op.State != "running" || op.Progress.Total != size ||
		op.Progress.Done >= size {
		t.Errorf("%+v, %+v", op, op.Progress)
	}
	w.call(t, "POST", "/api/v1/operations/"+op.ID+"/cancel", "", &op)
	if _, err := io.Copy(io.Discard, response.Body); err == nil {
		t.Error("a part is taken for the whole")
	}
	for op.State == "running" {
		op = operation()
	}
	if op.State != "cancelled" {
		t.Errorf("%+v", op)
	}
}
