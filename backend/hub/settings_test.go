package hub_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/hub"
	"slipway/backend/hub/hubtest"
	"slipway/backend/session"
	"slipway/backend/settings"
)

// noSettings is a file that is not there yet, and no variable is set.
func noSettings(t *testing.T) *settings.File {
	t.Helper()
	return settings.New(t.TempDir(), func(string) string { return "" })
}

func openWith(t *testing.T, shelf hub.Shelf, file *settings.File) *hub.Hub {
	t.Helper()
	h, err := hub.Open(hub.Config{Shelf: shelf, Settings: file, Owner: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestSettings(t *testing.T) {
	file := noSettings(t)
	h := openWith(t, &hubtest.Shelf{}, file)
	want := hub.Settings{Theme: "dark", Density: "compact", Language: "ko", CloseKeeps: "keep", TerminalFont: 16,
		TerminalFamily: "Fira Code", TerminalTheme: "contrast", TerminalBell: "sound", TerminalPaste: "several",
		TerminalReader: true, Notifications: true, Zoom: 150, KeepHome: "30d"}
	if err := h.SaveSettings(want); err != nil {
		t.Fatal(err)
	}
	if got := openWith(t, &hubtest.Shelf{}, file).Settings(); got != want {
		t.Fatalf("read back %+v, want %+v", got, want)
	}
	t.Run("every wrong value is named and nothing is saved", func(t *testing.T) {
		err := h.SaveSettings(hub.Settings{Theme: "pink", Density: "x", Language: "xx", CloseKeeps: "x",
			TerminalFont: 99, TerminalFamily: "x', y", TerminalTheme: "pink", TerminalBell: "x", TerminalPaste: "x",
			Zoom: 201, KeepHome: "long"})
		var e *session.Error
		if !errors.As(err, &e) || len(e.Fields) != 11 || h.Settings() != want {
			t.Fatalf("error %+v, settings %+v", err, h.Settings())
		}
	})
	t.Run("what cannot be written is not in force", func(t *testing.T) {
		if err := os.WriteFile(file.Path(), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		changed := want
		changed.Theme = "light"
		if err := h.SaveSettings(changed); session.CodeOf(err) != "settings_update_conflict" || h.Settings() != want {
			t.Fatalf("error %v, settings %+v", err, h.Settings())
		}
	})
}

func TestSettingsOfAnEarlierVersionMoveIntoTheFile(t *testing.T) {
	file, shelf := noSettings(t), &hubtest.Shelf{}
	shelf.SetRaw("hub.settings", []byte(`{"theme":"sepia","terminalFont":20}`))
	got := openWith(t, shelf, file).Settings()
	if got.Theme != "system" || got.TerminalFont != 20 || got.Language != "en" {
		t.Fatalf("settings %+v", got)
	}
	if state, err := file.Read(); err != nil || state.File["terminalFont"] != 20 {
		t.Fatalf("the file says %+v, %v", state.File, err)
	}
}

func TestSettingsChangedByHandAreTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := noSettings(t)
		h := openWith(t, &hubtest.Shelf{}, file)
		go h.Run(t.Context())
		write := func(content string) {
			if err := os.WriteFile(filepath.Join(filepath.Dir(file.Path()), "settings.json"), []byte(content),
				0o600); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Second)
			synctest.Wait()
		}
		write(`{"theme": "dark"}`)
		if got := h.Settings().Theme; got != "dark" {
			t.Fatalf("theme %s, want dark", got)
		}
		write(`{"theme": "light",`)
		if got := h.Settings().Theme; got != "dark" {
			t.Fatalf("a broken file has set the theme to %s", got)
		}
	})
}

// login keeps what it is told, or refuses it.
type login struct {
	on    bool
	calls int
	fault error
}

func (l *login) Set(on bool) error {
	l.calls++
	if l.fault == nil {
		l.on = on
	}
	return l.fault
}

func TestWhatStartsSlipwayAtLoginFollowsTheSetting(t *testing.T) {
	file, at := noSettings(t), &login{}
	h, err := hub.Open(hub.Config{Shelf: &hubtest.Shelf{}, Settings: file, Autostart: at, Owner: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	save := func(value any) error {
		_, err := h.SaveSetting(map[string]any{"autostart": value})
		return err
	}
	if err := save(true); err != nil || !at.on || !h.Settings().Autostart {
		t.Fatalf("turned on: %v, %+v, %+v", err, at, h.Settings())
	}
	if again, err := hub.Open(hub.Config{Shelf: &hubtest.Shelf{}, Settings: file, Autostart: at,
		Owner: "ada"}); err != nil || !again.Settings().Autostart || !at.on {
		t.Fatalf("after a restart: %v, %+v", err, at)
	}
	calls := at.calls
	if _, err := h.SaveSetting(map[string]any{"theme": "dark"}); err != nil || at.calls != calls {
		t.Fatalf("another setting touched it: %v, %+v", err, at)
	}
	at.fault = errors.New("read-only")
	if _, err := h.SaveSetting(map[string]any{"autostart": nil, "theme": "light"}); !errors.Is(err, at.fault) {
		t.Fatalf("error %v", err)
	}
	if s, err := file.Read(); err != nil || s.File["autostart"] != true || s.File["theme"] != "dark" ||
		!h.Settings().Autostart {
		t.Fatalf("after a refusal the file says %v (%v), in force is %+v", s.File, err, h.Settings())
	}
	at.fault = nil
	if err := save(nil); err != nil || at.on {
		t.Fatalf("turned off: %v, %+v", err, at)
	}
}

func TestTheSettingKeepsTheHomesOfLaunchesThatSayNothing(t *testing.T) {
	w := open(t, "local")
	w.run(t)
	if _, err := w.SaveSetting(map[string]any{"keepHome": "7d"}); err != nil {
		t.Fatal(err)
	}
	none, week, year := session.Duration(0), session.Duration(7*24*time.Hour), session.Duration(365*24*time.Hour)
	for _, c := range []struct{ asked, want *session.Duration }{{nil, &week}, {&none, &none}, {&year, &year}} {
		asked := session.Spec{Image: "a:1", Lifetime: session.Lifetime{KeepHome: c.asked}}
		s, err := w.Launch(t.Context(), hub.LaunchRequest{Spec: asked})
		if err != nil || *s.Spec.KeepHome != *c.want {
			t.Errorf("asked for %v it keeps the home for %v, %v", c.asked, s.Spec.KeepHome, err)
		}
		p, err := w.Preview(t.Context(), "", asked, 1)
		if err != nil || *p.Spec.KeepHome != *c.want {
			t.Errorf("asked for %v the preview keeps the home for %v, %v", c.asked, p.Spec.KeepHome, err)
		}
	}
	if recent := w.Recents()[2].Spec; recent.KeepHome != nil {
		t.Errorf("the setting of today is kept for later: %v", recent.KeepHome)
	}
}
