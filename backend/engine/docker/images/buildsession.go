package images

import (
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"slipway/backend/engine"
	"slipway/backend/engine/docker/daemon"
	"slipway/backend/session"
)

// The methods of gRPC that BuildKit calls over a session.
const (
	methodHealth      = "/grpc.health.v1.Health/Check"
	methodSecret      = "/moby.buildkit.secrets.v1.Secrets/GetSecret"
	methodCredentials = "/moby.filesync.v1.Auth/Credentials"
)

// The codes of gRPC with which calls end.
const (
	grpcOK              = 0
	grpcInvalidArgument = 3
	grpcNotFound        = 5
	grpcUnimplemented   = 12
)

// The bounds of a call: of its message, which names a secret or a registry, and of its header, in bytes.
const (
	maxCall       = 64 << 10
	maxCallHeader = 16 << 10
	callsAtOnce   = 20
)

// offer is what BuildKit may ask for while one build runs. Its answers are on no disk and in no log.
type offer struct {
	secrets []session.EnvVar
	logins  []session.RegistryLogin
}

// openSession opens a session of BuildKit, by which one build asks for its secrets and logins, and returns its id. The
// connection to the daemon changes its direction: the daemon calls methods of gRPC, which this side serves.
func (s *Store) openSession(ctx context.Context, b engine.Build) (id string, end func(), err error) {
	id = "slipway-" + string(session.NewID())
	conn, err := s.daemon.API.DialHijack(ctx, "/session", "h2c", map[string][]string{
		"X-Docker-Expose-Session-Uuid":        {id},
		"X-Docker-Expose-Session-Name":        {"slipway"},
		"X-Docker-Expose-Session-Grpc-Method": {methodHealth, methodSecret, methodCredentials},
	})
	if err != nil {
		return "", nil, daemon.Failure(ctx, err)
	}
	server := &http.Server{Handler: offer{b.Secrets, b.Logins}, Protocols: new(http.Protocols),
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: callsAtOnce}, MaxHeaderBytes: maxCallHeader,
		ErrorLog: slog.NewLogLogger(s.daemon.Log.Handler(), slog.LevelWarn)}
	server.Protocols.SetUnencryptedHTTP2(true)
	listener := make(only, 1)
	listener <- conn
	go server.Serve(listener) //nolint:errcheck // it ends with the session
	return id, func() {
		server.Close() //nolint:errcheck // nothing follows
		conn.Close()
	}, nil
}

// only is a listener that accepts one connection.
type only chan net.Conn

func (o only) Accept() (net.Conn, error) {
	if conn, open := <-o; open {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (o only) Close() error {
	close(o)
	return nil
}

func (only) Addr() net.Addr { return &net.UnixAddr{} }

// framed returns a message of gRPC as it is sent, uncompressed and after its length.
func framed(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

// ServeHTTP serves one call: a frame with the message of the request, one with the answer, and a code after it.
func (o offer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCall))
	code, answer := grpcInvalidArgument, []byte(nil)
	// The first byte of a frame says whether it is compressed, the next four its length.
	if err == nil && len(body) >= 5 && body[0] == 0 && int(binary.BigEndian.Uint32(body[1:])) == len(body)-5 {
		code, answer = o.call(r.URL.Path, body[5:])
	}
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Trailer", "Grpc-Status")
	if code == grpcOK {
		w.Write(framed(answer)) //nolint:errcheck // BuildKit has gone
	}
	w.Header().Set("Grpc-Status", strconv.Itoa(code))
}

// call returns the answer to one call.
func (o offer) call(method string, request []byte) (code int, answer []byte) {
	asked := ""
	err := eachField(request, func(number protowire.Number, data []byte, _ uint64) {
		if number == 1 { // ID of a secret, or host of a registry
			asked = string(data)
		}
	})
	switch {
	case method == methodHealth:
		return grpcOK, []byte{1 << 3, 1} // it serves
	case err != nil:
		return grpcInvalidArgument, nil
	case method == methodSecret:
		i := slices.IndexFunc(o.secrets, func(v session.EnvVar) bool { return v.Name == asked })
		if i < 0 {
			return grpcNotFound, nil
		}
		return grpcOK, textField(nil, 1, o.secrets[i].Value)
	case method == methodCredentials:
		if login := session.LoginFor(asked+"/", o.logins); login != nil {
			return grpcOK, textField(textField(nil, 1, login.User), 2, login.Password)
		}
		return grpcOK, nil // it asks the registry without a login
	}
	return grpcUnimplemented, nil
}

func textField(to []byte, number protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(to, number, protowire.BytesType), text)
}
