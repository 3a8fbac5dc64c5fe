package place

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Client asks a control plane, over connections that it keeps open.
type Client struct {
	Connection
	HTTP *http.Client
}

// Client returns a client of the control plane.
func (c Connection) Client() Client {
	return Client{Connection: c, HTTP: &http.Client{Transport: &http.Transport{}}} // no proxy: it is on this machine
}

// Refused is the error of a call that the control plane answered with a failure.
type Refused struct {
	Method, Path string
	Status       string // such as "404 Not Found"
	Body         []byte // a session.Error, unless something else has answered
}

func (e *Refused) Error() string {
	return fmt.Sprintf("%s %s: %s: %s", e.Method, e.Path, e.Status, bytes.TrimSpace(e.Body))
}

// Header returns what says to the control plane who asks.
func (c Connection) Header() http.Header {
	return http.Header{"Authorization": {"Bearer " + c.Token}}
}

// Call makes one request of the API, with in as its body unless that is nil, and
// decodes the answer into out unless that is nil. It fails with a [*Refused] where
// the control plane answers with a failure.
func (c Client) Call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.URL+path, body)
	if err != nil {
		return err
	}
	request.Header = c.Header()
	if in != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= http.StatusBadRequest {
		return &Refused{Method: method, Path: path, Status: response.Status, Body: data}
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(data, out)
}
