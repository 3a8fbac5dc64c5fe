package server_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"slipway/backend/runtimes"
	"slipway/backend/session"
)

func TestTheDefinitionOfAModelIsReadFromItsFolder(t *testing.T) {
	w, root := startWithFiles(t)
	if _, err := w.agent.CreateFolder(t.Context(), session.FolderRequest{Name: "models"}); err != nil {
		t.Fatal(err)
	}
	const good = "models:\n  - name: tiny\n    model_path: /models\n    service:\n      port: 8080\n"
	for name, text := range map[string]string{"model-definition.yml": good,
		"chat/model-definition.yaml": strings.Replace(good, "8080", "80", 1),
		"chat/other.yaml":            strings.Replace(good, "port", "prot", 1),
		"large.yml":                  strings.Repeat("#", runtimes.MaxDefinition+1)} {
		if dir, _, inside := strings.Cut(name, "/"); inside {
			_ = root.Mkdir(dir, 0o755) // it may be there
		}
		file, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
		file.Close()
	}
	for query, want := range map[string]struct {
		status int
		field  string
	}{
		"folder=models": {http.StatusOK, ""}, "folder=models&path=/&agent=local": {http.StatusOK, ""},
		"folder=models&path=../model-definition.yml": {http.StatusOK, ""},
		"folder=models&path=chat":                    {http.StatusUnprocessableEntity, "model-definition.yaml:5"},
		"folder=models&path=chat/other.yaml":         {http.StatusUnprocessableEntity, "other.yaml:5"},
		"folder=models&path=large.yml":               {http.StatusUnprocessableEntity, "large.yml"},
		"folder=models&path=none":                    {http.StatusNotFound, ""},
		"":                                           {http.StatusBadRequest, "folder"},
		"folder=other":                               {http.StatusNotFound, ""},
	} {
		var answer struct {
			session.Error
			runtimes.Definition
		}
		status := w.call(t, "GET", "/api/v1/services/definition?"+query, "", &answer)
		field := ""
		if len(answer.Fields) > 0 {
			field = answer.Fields[0].Field
		}
		if status != want.status || field != want.field {
			t.Errorf("%s: %d %+v", query, status, answer)
		}
		if status == http.StatusOK && (answer.File != "model-definition.yml" || answer.Serving.Port != 8080) {
			t.Errorf("%s: %+v", query, answer.Definition)
		}
	}
}
