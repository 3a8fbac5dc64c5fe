package service

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"slipway/backend/daemon"
	"slipway/backend/demo"
	"slipway/backend/place"
	"slipway/backend/rotate"
	"slipway/backend/session"
	"slipway/backend/store"
)

const (
	handover      = 5 * time.Second // how long a start waits for the folder while another process releases it
	handoverPause = 20 * time.Millisecond
	logMost       = 8 << 20 // bytes of a log file
	usualPort     = 7421
	portKey       = "server.port"
)

// hold locks the folder. If it is locked but not served, another process is starting or stopping, so hold waits.
func hold(ctx context.Context, home place.Home) (*place.Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, handover)
	defer cancel()
	for {
		lock, err := home.Lock()
		if err == nil {
			return lock, nil
		}
		if !errors.Is(err, place.ErrLocked) {
			return nil, session.WrapError(err, session.CodeServerFailed, "The folder "+home.Dir+" cannot be used.",
				"Check its permissions, or set SLIPWAY_HOME to another one.")
		}
		if status, ok := alone(ctx, home); ok {
			return nil, session.WrapError(err, session.CodeStartConflict,
				fmt.Sprintf("The agent of %s runs by itself (process %d).", home.Dir, status.PID),
				"Stop it first: slipway agent stop. Sessions keep running.")
		}
		_, servingErr := home.Serving()
		if servingErr == nil || ctx.Err() != nil {
			return nil, session.WrapError(err, session.CodeStartConflict,
				"Another Slipway uses the folder "+home.Dir+".", "Use that one, or end it first: slipway shutdown")
		}
		select {
		case <-ctx.Done():
		case <-time.After(handoverPause):
		}
	}
}

// alone returns the status of the daemon that runs the agent of a folder, if any.
func alone(ctx context.Context, home place.Home) (daemon.Status, bool) {
	c, err := daemon.Connect(ctx, home)
	if err != nil {
		return daemon.Status{}, false
	}
	status, err := c.Status(ctx)
	return status, err == nil && status.Role == daemon.RoleAgent
}

// notADemo fails if a folder belongs to a demonstration.
func notADemo(home place.Home) error {
	_, marked, err := demo.Marked(home.Dir)
	if err == nil && marked {
		err = session.NewError(session.CodeStartConflict, fmt.Sprintf("The folder %s is one of a demo.", home.Dir),
			"Go on with the demo: slipway demo --keep "+home.Dir+". SLIPWAY_HOME chooses another folder.")
	}
	return err
}

// inFolder locks the folder and does work, which logs to log or, if that is nil, to the file at path.
func inFolder(ctx context.Context, home place.Home, path string, log *slog.Logger, what string,
	work func(*slog.Logger) error) error {
	lock, err := hold(ctx, home)
	if err != nil {
		return err
	}
	file := &rotate.File{Path: path, Most: logMost, Files: 2}
	if log == nil {
		if err := file.Open(); err != nil {
			return errors.Join(err, lock.Close())
		}
		log = logTo(file)
	}
	shortenSlices()
	if err = work(log); err != nil {
		log.Error(what+" failed", "error", err)
	}
	return errors.Join(err, file.Close(), lock.Close())
}

// listen listens on loopback: on the requested port, or else on the one used last, the usual one, or any.
func listen(asked, usual int, shelf *store.Shelf) (net.Listener, int, error) {
	ports := []int{asked}
	if asked == 0 {
		usual = cmp.Or(usual, usualPort)
		last := usual
		if _, err := shelf.Load(portKey, &last); err != nil {
			last = usual
		}
		ports = []int{last, usual, 0}
	}
	var err error
	for _, port := range ports {
		var listener net.Listener
		if listener, err = net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(port)); err == nil {
			return listener, listener.Addr().(*net.TCPAddr).Port, nil
		}
	}
	if asked != 0 {
		return nil, 0, session.WrapError(err, session.CodeListenConflict, fmt.Sprintf("Port %d cannot be used.", asked),
			"Another program may have it; choose another port, or none.")
	}
	return nil, 0, session.WrapError(err, session.CodeListenConflict, "No port of this computer can be listened on.",
		"Check the loopback interface.")
}

// ownToken returns the token of the folder. It creates one at the first start.
func ownToken(home place.Home) (string, error) {
	token, err := home.Token()
	if err == nil && token != "" {
		return token, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	token = strings.ToLower(rand.Text() + rand.Text())
	return token, home.SaveToken(token)
}
