package service

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strconv"
	"strings"

	"slipway/backend/place"
	"slipway/backend/session"
	"slipway/backend/store"
)

const (
	usualPort = 7421
	portKey   = "server.port"
)

// listen takes the port asked for, or else the one used last, the usual one, or
// any. On loopback only.
func listen(asked, usual int, shelf *store.Shelf) (net.Listener, int, error) {
	if asked != 0 {
		listener, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(asked))
		if err != nil {
			return nil, 0, session.WrapError(err, session.CodeListenConflict,
				fmt.Sprintf("Port %d cannot be used.", asked),
				"Another program may have it; choose another port, or none.")
		}
		return listener, asked, nil
	}
	usual = cmp.Or(usual, usualPort)
	last := usual
	if _, err := shelf.Load(portKey, &last); err != nil {
		last = usual
	}
	var err error
	for _, port := range []int{last, usual, 0} {
		var listener net.Listener
		if listener, err = net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(port)); err != nil {
			continue
		}
		return listener, listener.Addr().(*net.TCPAddr).Port, nil
	}
	return nil, 0, session.WrapError(err, session.CodeListenConflict, "No port of this computer can be listened on.",
		"Check the loopback interface.")
}

// ownToken reads the token of the folder, or makes one at the first start.
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
