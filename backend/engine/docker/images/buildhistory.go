package images

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"slipway/backend/engine/docker/daemon"
)

// The methods of BuildKit, of which a Docker of before 23 has none: it keeps no history of builds.
const (
	methodHistory = "/moby.buildkit.v1.Control/ListenBuildHistory"
	methodUpdate  = "/moby.buildkit.v1.Control/UpdateBuildHistory"
)

// The numbers of fields in BuildKit's api/services/control/control.proto.
const (
	listenEarlyExit = 3

	eventType   = 1
	eventRecord = 2
	recordRef   = 1

	updateRef    = 1
	updateDelete = 3

	eventComplete = 1
)

// maxAnswer bounds a message of BuildKit, which is a record with the result of a build, in bytes.
const maxAnswer = 16 << 20

// forget deletes what BuildKit's history has of the build whose arguments have a secret. A build that was cancelled may
// not have ended yet; its record is complete when it has.
func (s *Store) forget(ctx context.Context, secret string) error {
	ctx, cancel := s.daemon.Brief(ctx)
	defer cancel()
	conn, err := s.daemon.API.DialHijack(ctx, "/grpc", "h2c", nil)
	if err != nil {
		return daemon.Failure(ctx, err)
	}
	defer conn.Close()
	kit := &http.Transport{Protocols: new(http.Protocols), MaxConnsPerHost: 1,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}
	kit.Protocols.SetUnencryptedHTTP2(true)
	defer kit.CloseIdleConnections()

	ref, complete, err := recordWith(ctx, kit, secret, true)
	if err == nil && ref != "" && !complete {
		ref, _, err = recordWith(ctx, kit, secret, false)
	}
	if err != nil || ref == "" {
		return err
	}
	request := protowire.AppendTag(textField(nil, updateRef, ref), updateDelete, protowire.VarintType)
	return callKit(ctx, kit, methodUpdate, append(request, 1), func([]byte) bool { return true })
}

// recordWith returns the id of the build whose record has a secret, empty if there is none, and whether it has ended.
// Unless it is to return at once, it waits for that end.
func recordWith(ctx context.Context, kit *http.Transport, secret string, atOnce bool) (ref string, complete bool,
	err error) {
	request := protowire.AppendTag(nil, listenEarlyExit, protowire.VarintType)
	err = callKit(ctx, kit, methodHistory, append(request, byte(protowire.EncodeBool(atOnce))),
		func(event []byte) bool {
			if !bytes.Contains(event, []byte(secret)) {
				return true
			}
			complete = false
			_ = eachField(event, func(number protowire.Number, data []byte, value uint64) {
				switch number {
				case eventType:
					complete = value == eventComplete
				case eventRecord:
					_ = eachField(data, func(number protowire.Number, data []byte, _ uint64) {
						if number == recordRef {
							ref = string(data)
						}
					})
				}
			})
			return !complete
		})
	return ref, complete, err
}

// callKit calls a method of BuildKit, and each with every message of the answer until it returns false. A method that
// BuildKit does not have answers nothing.
func callKit(ctx context.Context, kit *http.Transport, method string, request []byte, each func([]byte) bool) error {
	body := bytes.NewReader(framed(request))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://buildkit"+method, body)
	if err != nil {
		return err
	}
	r.Header = http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}}
	answer, err := kit.RoundTrip(r)
	if err != nil {
		return daemon.Failure(ctx, err)
	}
	defer answer.Body.Close()
	var head [5]byte
	for {
		if _, err := io.ReadFull(answer.Body, head[:]); err == io.EOF {
			break
		} else if err != nil {
			return daemon.Failure(ctx, err)
		}
		length := binary.BigEndian.Uint32(head[1:])
		if head[0] != 0 || length > maxAnswer {
			return fmt.Errorf("%s answers a message of %d bytes", method, length)
		}
		message := make([]byte, length)
		if _, err := io.ReadFull(answer.Body, message); err != nil {
			return daemon.Failure(ctx, err)
		}
		if !each(message) {
			return nil
		}
	}
	status := answer.Trailer.Get("Grpc-Status")
	if status == "" {
		status = answer.Header.Get("Grpc-Status") // where there was no message
	}
	if code, err := strconv.Atoi(status); err != nil || code != grpcOK && code != grpcUnimplemented {
		return fmt.Errorf("%s answers with the code %q: %s", method, status, answer.Trailer.Get("Grpc-Message"))
	}
	return nil
}
