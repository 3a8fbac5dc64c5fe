package vault_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/backend/session"
	"slipway/backend/vault"
)

// busConfig is that of a session bus that starts no services: the only keyring is that of the test.
const busConfig = `<busconfig><type>session</type><listen>unix:tmpdir=/tmp</listen>
<policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy>
</busconfig>`

// startKeyring starts a session bus with gnome-keyring on it, whose keyring is unlocked and in a folder of the test.
func startKeyring(t *testing.T) {
	t.Helper()
	for _, program := range []string{"dbus-daemon", "gnome-keyring-daemon"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatal(program + " is missing: build/ci/setup.sh test installs it")
		}
	}
	home := t.TempDir()
	for name, dir := range map[string]string{"HOME": "", "XDG_DATA_HOME": "data", "XDG_RUNTIME_DIR": "run"} {
		path := filepath.Join(home, dir)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv(name, path)
	}
	config := filepath.Join(home, "bus.xml")
	if err := os.WriteFile(config, []byte(busConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	bus := exec.Command("dbus-daemon", "--config-file="+config, "--nofork", "--print-address",
		"--address=unix:dir="+home)
	out, err := bus.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	run := func(cmd *exec.Cmd) {
		t.Helper()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
	run(bus)
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", strings.TrimSpace(address))
	daemon := exec.Command("gnome-keyring-daemon", "--foreground", "--unlock", "--components=secrets")
	daemon.Stdin = strings.NewReader("password\n")
	run(daemon)
}

func TestValuesAreInTheKeyringWhereThereIsOne(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a desktop's keyring")
	}
	startKeyring(t)
	path := filepath.Join(t.TempDir(), "secrets.json")
	if _, err := vault.New("", path).Set("variable/A", "of an earlier start without a keyring"); err != nil {
		t.Fatal(err)
	}
	v := vault.New("slipway /home/ada", path)
	kept, err := v.Set("variable/A", "hush")
	for limit := time.Now().Add(time.Minute); err == nil && kept != vault.InKeyring; kept, err = v.Set("variable/A",
		"hush") { // until the keyring answers
		if time.Now().After(limit) {
			t.Fatal("the keyring does not answer")
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "{}" {
		t.Errorf("the file is %q, %v", data, err)
	}
	if got, err := vault.New("slipway /home/ada", path).Get("variable/A", kept); got != "hush" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := vault.New("slipway /home/eve", path).Get("variable/A", kept); session.CodeOf(err) !=
		session.CodeSettingsFailed {
		t.Errorf("another folder has it: %v", err)
	}
	if err := v.Delete("variable/A"); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Get("variable/A", kept); err == nil {
		t.Error("it is there after the deletion")
	}
}
