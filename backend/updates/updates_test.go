package updates

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/session"
)

// shelf stores values in memory.
type shelf map[string][]byte

func (s shelf) Load(key string, value any) (bool, error) {
	data, ok := s[key]
	if !ok {
		return false, nil
	}
	return true, json.Unmarshal(data, value)
}

func (s shelf) Save(key string, value any) (err error) {
	s[key], err = json.Marshal(value)
	return err
}

func newChecker(address *string, transport http.RoundTripper, s Shelf) *Checker {
	return New(Config{Address: func() string { return *address }, Version: "1.2.0", Transport: transport, Shelf: s,
		Log: slog.New(slog.DiscardHandler)})
}

func TestTheAnswersOfAHost(t *testing.T) {
	answer, status := "", http.StatusOK
	var asked http.Header
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/latest.json" {
			t.Errorf("it is asked for %s", r.URL)
		}
		asked = r.Header
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer) // the client may leave
	}))
	defer host.Close()
	address := host.URL + "/latest.json"
	stored := shelf{}
	for name, one := range map[string]struct {
		answer string
		status int
		newer  string
		code   session.Code
	}{
		"newer": {`{"version":"1.10.0","date":"2026-11-27","notes":"### New\n- a\u001b[31m <b>","more":1}`, 200,
			"1.10.0", ""},
		"the same":   {`{"version":"1.2.0","date":"2026-11-27","notes":"-"}`, 200, "", ""},
		"older":      {`{"version":"1.1.9","date":"2026-11-27","notes":"-"}`, 200, "", ""},
		"before it":  {`{"version":"1.2.0-rc.1","date":"2026-11-27","notes":"-"}`, 200, "", ""},
		"no JSON":    {`<html>`, 200, "", session.CodeServerAnswer},
		"no object":  {`["1.3.0"]`, 200, "", session.CodeServerAnswer},
		"no version": {`{"version":"1.3.0; rm -rf /","date":"2026-11-27"}`, 200, "", session.CodeServerAnswer},
		"short":      {`{"version":"2","date":"2026-11-27"}`, 200, "", session.CodeServerAnswer},
		"no date":    {`{"version":"1.3.0","date":"soon"}`, 200, "", session.CodeServerAnswer},
		"wrong type": {`{"version":"1.3.0","date":"2026-11-27","notes":{}}`, 200, "", session.CodeServerAnswer},
		"huge": {`{"version":"1.3.0","date":"2026-11-27","notes":"` + strings.Repeat("x", answerMost) + `"}`, 200, "",
			session.CodeServerAnswer},
		"elsewhere": {`{"version":"1.3.0","date":"2026-11-27"}`, 302, "", session.CodeServerAnswer},
		"not there": {`{"version":"1.3.0","date":"2026-11-27"}`, 404, "", session.CodeServerAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			answer, status = one.answer, one.status
			got := newChecker(&address, nil, shelf{}).Check(t.Context())
			newer, code := "", session.Code("")
			if got.Newer != nil {
				newer = got.Newer.Version
			}
			if got.Problem != nil {
				code = got.Problem.Code
			}
			if newer != one.newer || code != one.code || got.Asked == nil {
				t.Errorf("%+v, problem %v", got, got.Problem)
			}
			if one.newer != "" && got.Newer.Notes != "### New\n- a[31m <b>" {
				t.Errorf("notes %q", got.Newer.Notes)
			}
		})
	}
	for name := range asked {
		if name != "User-Agent" && name != "Accept-Encoding" {
			t.Errorf("it is told %s: %s", name, asked[name])
		}
	}
	if asked.Get("User-Agent") != "Slipway" {
		t.Errorf("it is told %s", asked.Get("User-Agent"))
	}
	t.Run("a failure leaves what is known, also after a restart", func(t *testing.T) {
		answer, status = `{"version":"1.3.0","date":"2026-11-27"}`, 200
		c := newChecker(&address, nil, stored)
		c.Check(t.Context())
		status = 500
		c.Check(t.Context())
		for _, c := range []*Checker{c, newChecker(&address, nil, stored)} {
			if got := c.Offer(); got.Newer == nil || got.Newer.Version != "1.3.0" || got.Problem == nil {
				t.Errorf("%+v", got)
			}
		}
	})
	t.Run("another host has said nothing yet", func(t *testing.T) {
		other := "https://other.example/latest.json"
		if got := newChecker(&other, nil, stored).Offer(); got.Newer != nil || got.Asked != nil {
			t.Errorf("%+v", got)
		}
	})
	t.Run("no answer", func(t *testing.T) {
		host.Close()
		got := newChecker(&address, nil, shelf{}).Check(t.Context())
		if got.Problem == nil || got.Problem.Code != session.CodeOperationFailed || got.Newer != nil {
			t.Errorf("%+v", got)
		}
	})
}

func TestWithoutAnAddressNobodyIsAsked(t *testing.T) {
	address := ""
	c := newChecker(&address, roundTrip(func(*http.Request) (*http.Response, error) {
		t.Error("somebody is asked")
		return nil, errors.New("no")
	}), shelf{})
	if got := c.Check(t.Context()); got.Problem == nil || got.Problem.Code != session.CodeSettingsInvalid ||
		got.Asked != nil {
		t.Errorf("%+v", got)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestTheHostIsAskedOnceADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, address, stored := 0, "", shelf{}
		silent := roundTrip(func(*http.Request) (*http.Response, error) {
			asked++
			return nil, errors.New("no network")
		})
		runs := func(d time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			newChecker(&address, silent, stored).Run(ctx)
		}
		runs(3 * day)
		if asked != 0 {
			t.Errorf("asked %d times without an address", asked)
		}
		address = "https://host.example/latest.json"
		for range 5 { // also across restarts, and although it fails
			runs(time.Hour)
		}
		if asked != 1 {
			t.Errorf("asked %d times in five hours, want 1", asked)
		}
		if runs(3 * day); asked != 4 {
			t.Errorf("asked %d times in the days after, want 3 more", asked)
		}
	})
}

func TestHowACopyIsUpgraded(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(root, name)
		made := os.MkdirAll(filepath.Dir(path), 0o755)
		if err := errors.Join(made, os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	debian := filepath.Join(root, "debian")
	write("debian/var/lib/dpkg/info/slipway.list", "/.\n/usr\n/usr/bin\n/usr/bin/slipway\n/usr/bin/slipway-desktop\n")
	fedora := filepath.Join(root, "fedora")
	write("fedora/usr/lib/sysimage/rpm/rpmdb.sqlite", "")
	write("installed/uninstall.exe", "")
	write("source/build/VERSION", "1.2.0\n")
	for _, one := range []struct{ system, root, program, want string }{
		{"linux", debian, "/usr/bin/slipway-desktop", "upgradeDeb"},
		{"linux", debian, "/usr/local/bin/slipway", "upgradeArchive"},
		{"linux", fedora, "/usr/bin/slipway", "upgradeRPM"},
		{"linux", fedora, "/usr/local/bin/slipway", "upgradeArchive"},
		{"linux", root, "/usr/bin/slipway", "upgradeArchive"},
		{"linux", debian, write("source/build/bin/slipway", ""), "upgradeSource"},
		{"windows", root, write("installed/slipway.exe", ""), "upgradeInstaller"},
		{"windows", root, write("unpacked/slipway.exe", ""), "upgradeArchive"},
		{"darwin", debian, "/usr/bin/slipway", "upgradeArchive"},
		{"linux", debian, "", "upgradeArchive"},
	} {
		if got := adviceFor(one.system, one.root, one.program); got != one.want {
			t.Errorf("%s on %s: %s, want %s", one.program, one.system, got, one.want)
		}
		if session.Say(one.want).English() == "" {
			t.Errorf("%s says nothing", one.want)
		}
	}
	const files = "https://host.example/a/files/"
	address := "https://host.example/a/latest.json"
	said := session.Reader{}.Read(newChecker(&address, nil, shelf{}).Offer().Advice...)
	if !strings.Contains(said, files) {
		t.Errorf("%q does not name %s", said, files)
	}
}

func TestVersions(t *testing.T) {
	for version, than := range map[string]string{"1.10.0": "1.9.9", "2.0.0": "2.0.0-rc.1", "0.1.1-rc.2": "0.1.1-rc.1"} {
		if !Newer(version, than) || Newer(than, version) || Newer(version, version) || Newer(version, "dev") {
			t.Errorf("%s and %s", version, than)
		}
	}
	for _, text := range []string{"", "1", "1.2", "v1.2.3", "01.2.3", "1.2.3 ", "1.2.3+x", "1.2.3\n",
		strings.Repeat("1", 70) + ".0.0"} {
		if IsVersion(text) {
			t.Errorf("%q is a version", text)
		}
	}
}
