package server

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/backend/diagnose"
	"slipway/backend/hub"
	"slipway/backend/hub/hubtest"
	"slipway/backend/settings"
)

func TestNoSecretLeavesByTheLogOrTheDiagnostics(t *testing.T) {
	const token = "correcthorsebatterystaple"
	dir := t.TempDir()
	path := filepath.Join(dir, "slipway.log")
	said := "one\nlevel=WARN msg=\"asked with " + token +
		"\" url=http://127.0.0.1/login?code=SECRET\nenv WANDB_API_KEY=SECRET\n"
	if err := os.WriteFile(path, []byte(said), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := hub.Open(hub.Config{
		Members: []hub.Member{{Name: "local", Local: true, Agent: hubtest.New("local").Agent()}},
		Shelf:   &hubtest.Shelf{}, Settings: settings.New(dir, func(string) string { return "" }), Owner: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.SaveSetting(map[string]any{"theme": "dark"}); err != nil {
		t.Fatal(err)
	}
	s := planeRoutes{hub: h, logFile: path, redactor: diagnose.NewRedactor("", token)}
	report, err := s.getDiagnostics(httptest.NewRequest(http.MethodGet, "/api/v1/diagnostics", nil))
	if err != nil {
		t.Fatal(err)
	}
	tail, err := s.getLog(httptest.NewRequest(http.MethodGet, "/api/v1/log?tail=2", nil))
	if err != nil {
		t.Fatal(err)
	}
	lines := tail.Lines
	if len(lines) != 2 {
		t.Errorf("%d lines", len(lines))
	}
	text := report.Text
	for _, secret := range []string{token, "SECRET"} {
		if strings.Contains(text, secret) || strings.Contains(strings.Join(lines, ""), secret) {
			t.Errorf("%s is left in\n%s\n%s", secret, text, lines)
		}
	}
	for _, told := range []string{"Agent local", "theme is \"dark\"", "level=WARN"} {
		if !strings.Contains(text, told) {
			t.Errorf("%s is not told in\n%s", told, text)
		}
	}
}
