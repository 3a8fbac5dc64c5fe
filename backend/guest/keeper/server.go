package keeper

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	requestLimit = 20 * time.Second
	maxAnswer    = 256 << 20
)

// server is the Jupyter server of the session, which has no password. Its REST interface is that of jupyter_server.
// The guest does not use net/http, which would double its size.
type server struct {
	network, address string
}

// document is a notebook as the server has it.
type document struct {
	Content fields    `json:"content"`
	Saved   time.Time `json:"last_modified"`
}

// opened is a notebook that has a kernel.
type opened struct {
	Path   string `json:"path"`
	Type   string `json:"type"`
	Kernel struct {
		ID    string `json:"id"`
		Pages int    `json:"connections"`
	} `json:"kernel"`
}

// opened returns the notebooks that have kernels. It does not count as use of the server.
func (s server) opened(ctx context.Context) (list []opened, err error) {
	err = s.call(ctx, "GET", "/api/sessions?no_track_activity=1", nil, &list)
	return list, err
}

func contentsPath(path string) string { return "/api/contents/" + (&url.URL{Path: path}).EscapedPath() }

func (s server) read(ctx context.Context, path string) (d document, err error) {
	err = s.call(ctx, "GET", contentsPath(path)+"?type=notebook&content=1&no_track_activity=1", nil, &d)
	return d, err
}

// savedAt returns when a file was last written. It fails with errMissing if there is none.
func (s server) savedAt(ctx context.Context, path string) (time.Time, error) {
	var d document
	err := s.call(ctx, "GET", contentsPath(path)+"?content=0&no_track_activity=1", nil, &d)
	return d.Saved, err
}

func (s server) write(ctx context.Context, path string, notebook fields) error {
	body, err := json.Marshal(fields{"type": "notebook", "format": "json", "content": notebook})
	if err != nil {
		return err
	}
	return s.call(ctx, "PUT", contentsPath(path)+"?no_track_activity=1", body, nil)
}

var errMissing = errors.New("the server has no such file")

// call makes one request of HTTP 1.0, so that the answer ends with its connection.
func (s server) call(ctx context.Context, method, target string, body []byte, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, s.network, s.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	const secret = "slipway" // a page of another origin can neither read nor set it
	head := method + " " + target + " HTTP/1.0\r\nHost: localhost\r\nUser-Agent: slipway-guest\r\n" +
		"Accept: application/json\r\nCookie: _xsrf=" + secret + "\r\nX-XSRFToken: " + secret + "\r\n"
	if body != nil {
		head += "Content-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n"
	}
	if _, err := conn.Write(append([]byte(head+"\r\n"), body...)); err != nil {
		return err
	}
	return readAnswer(bufio.NewReader(io.LimitReader(conn, maxAnswer)), answer)
}

// ReadStatus reads the first line of an HTTP answer and returns the status.
func ReadStatus(from *bufio.Reader) (int, error) {
	line, err := from.ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("read status: %w", err)
	}
	version, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	code, _, _ := strings.Cut(rest, " ")
	status, err := strconv.Atoi(code)
	if err != nil || !strings.HasPrefix(version, "HTTP/") {
		return 0, errors.New("the answer is not HTTP")
	}
	return status, nil
}

func readAnswer(from *bufio.Reader, answer any) error {
	status, err := ReadStatus(from)
	if err != nil {
		return err
	}
	for line := ""; line != "\r\n"; {
		if line, err = from.ReadString('\n'); err != nil {
			return err
		}
	}
	data, err := io.ReadAll(from)
	switch {
	case err != nil:
		return err
	case status == 404:
		return errMissing
	case status/100 != 2:
		return fmt.Errorf("the server answers %d", status)
	case answer == nil:
		return nil
	}
	return unmarshal(data, answer)
}
