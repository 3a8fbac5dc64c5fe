package backend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"slipway/backend/api"
	"slipway/backend/place"
	"slipway/backend/session"
)

// BesideCommand is the hidden command by which a control plane starts a
// demonstration beside itself, as a second process of this program.
const BesideCommand = "demo-beside"

// besidePatience is how long the demonstration may take to answer.
const besidePatience = 30 * time.Second

// beside starts a demonstration beside what is real, when somebody asks to see
// it. The demonstration has a folder and a port of its own, ends with this
// process, and is then thrown away. It implements [server.Beside].
type beside struct {
	program []string // starts this program; empty: the running one

	mu      sync.Mutex // guards what follows; held while one is started
	running *companion
	home    place.Home // of the one that runs
}

// besideReady is the one line that a demonstration beside what is real says.
type besideReady struct {
	Dir string `json:"dir"`
}

// Start starts the demonstration unless it runs, and returns an address that logs
// a browser in to it once. It fails with demo_start_failed.
func (b *beside) Start(ctx context.Context) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running != nil {
		select {
		case <-b.running.ended:
			b.running = nil
		default:
		}
	}
	if b.running == nil {
		if err := b.launch(ctx); err != nil {
			return "", besideFailed(err)
		}
	}
	address, err := loginTo(ctx, b.home)
	if err != nil {
		return "", besideFailed(err)
	}
	return address, nil
}

func besideFailed(err error) error {
	return &session.Error{Code: "demo_start_failed", Message: "The demo does not start.",
		Hint: "Try slipway demo in a terminal: it says why.", Err: err}
}

// launch starts the process and waits until it answers. The caller holds mu.
func (b *beside) launch(ctx context.Context) error {
	c, err := startCompanion(ctx, b.program, BesideCommand)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, besidePatience)
	defer cancel()
	var ready besideReady
	select {
	case line := <-c.told:
		err = json.Unmarshal(line, &ready)
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return errors.Join(err, c.end())
	}
	b.running, b.home = c, place.Home{Dir: ready.Dir}
	return nil
}

// loginTo asks the control plane of a folder for a one-time address.
func loginTo(ctx context.Context, home place.Home) (string, error) {
	connection, err := home.Connect(ctx)
	if err != nil {
		return "", err
	}
	client := connection.Client()
	defer client.HTTP.CloseIdleConnections()
	var link api.LoginLink
	err = client.Call(ctx, http.MethodPost, "/api/v1/login", nil, &link)
	return link.URL, err
}

// end ends the demonstration, if one runs, and waits until it is thrown away.
func (b *beside) end() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running == nil {
		return nil
	}
	return b.running.end()
}

// BesideMain is the demonstration that a control plane starts beside itself. It
// serves until its standard input ends and returns the exit code of the process.
func BesideMain(pages Pages, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, cancel := accompanied(stdin)
	defer cancel()
	err := ServeDemo(ctx, DemoConfig{Assets: pages.Interface, Notebook: pages.Notebook,
		Ready: func(_ Ready, dir string) {
			_ = json.NewEncoder(stdout).Encode(besideReady{Dir: dir}) // nobody reads it: then the input ends, too
		}})
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}
