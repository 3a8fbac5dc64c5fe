package images

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/distribution/reference"

	"slipway/backend/session"
)

// registry is a repository of a registry, as the OCI distribution specification defines it.
type registry struct {
	client *http.Client
	image  string // as it was asked for
	base   string // https://host/v2/name
	login  *session.RegistryLogin
	header string // by which requests are authorized; empty: not yet
}

// manifestMost is the most of a manifest that is read, in bytes, and replyTime how long a registry may not answer.
const (
	manifestMost = 4 << 20
	replyTime    = 30 * time.Second
)

// openRegistry returns the repository of an image. Only registries of this computer are asked without encryption.
func openRegistry(ref string, named reference.Named, login *session.RegistryLogin) *registry {
	host, scheme := reference.Domain(named), "https"
	if host == session.DockerHub {
		host = "registry-1.docker.io"
	}
	if local(host) {
		scheme = "http"
	}
	return &registry{image: ref, login: login, base: scheme + "://" + host + "/v2/" + reference.Path(named),
		client: &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
			ResponseHeaderTimeout: replyTime, TLSHandshakeTimeout: replyTime}}}
}

func local(host string) bool {
	name := (&url.URL{Host: host}).Hostname()
	return name == "localhost" || net.ParseIP(name).IsLoopback()
}

func (r *registry) close() { r.client.CloseIdleConnections() }

// get returns a part of the repository. It fails with engine_pull_not-found, engine_pull_forbidden and
// engine_pull_unavailable.
func (r *registry) get(ctx context.Context, part, accept string) (*http.Response, error) {
	reply, err := r.ask(ctx, part, accept)
	if err == nil && reply.StatusCode == http.StatusUnauthorized {
		challenge := reply.Header.Get("WWW-Authenticate")
		reply.Body.Close() //nolint:errcheck // it is not read
		if err := r.authorize(ctx, challenge); err != nil {
			return nil, err
		}
		reply, err = r.ask(ctx, part, accept)
	}
	if err != nil {
		return nil, r.failure(ctx, session.CodePullUnavailable, err)
	}
	code := session.CodePullUnavailable
	switch reply.StatusCode {
	case http.StatusOK:
		return reply, nil
	case http.StatusNotFound:
		code = session.CodePullNotFound
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		code = session.CodePullForbidden
	}
	reply.Body.Close() //nolint:errcheck // it is not read
	return nil, r.failure(ctx, code, errors.New(reply.Status))
}

func (r *registry) ask(ctx context.Context, part, accept string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.base+"/"+part, nil)
	if err != nil {
		return nil, err
	}
	if accept != "" {
		request.Header.Set("Accept", accept)
	}
	if r.header != "" {
		request.Header.Set("Authorization", r.header)
	}
	return r.client.Do(request)
}

var challengeRule = regexp.MustCompile(`([a-z]+)="([^"]*)"`)

// authorize answers the challenge of a registry: with the login itself, or with a token that another server gives for
// it. The login is only sent encrypted.
func (r *registry) authorize(ctx context.Context, challenge string) error {
	basic := ""
	if r.login != nil {
		request := http.Request{Header: http.Header{}}
		request.SetBasicAuth(r.login.User, r.login.Password)
		basic = request.Header.Get("Authorization")
	}
	if kind, _, _ := strings.Cut(challenge, " "); !strings.EqualFold(kind, "Bearer") {
		r.header = basic
		return nil
	}
	words := url.Values{}
	realm := ""
	for _, match := range challengeRule.FindAllStringSubmatch(challenge, -1) {
		switch match[1] {
		case "realm":
			realm = match[2]
		case "service", "scope":
			words.Set(match[1], match[2])
		}
	}
	at, err := url.Parse(realm)
	if err != nil || at.Scheme != "https" && !local(at.Host) {
		return r.failure(ctx, session.CodePullForbidden, fmt.Errorf("%.200q gives no tokens", realm))
	}
	at.RawQuery = words.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return r.failure(ctx, session.CodePullUnavailable, err)
	}
	if basic != "" {
		request.Header.Set("Authorization", basic)
	}
	reply, err := r.client.Do(request)
	if err != nil {
		return r.failure(ctx, session.CodePullUnavailable, err)
	}
	defer reply.Body.Close() //nolint:errcheck // only read
	var said struct {
		Token  string `json:"token"`
		Access string `json:"access_token"`
	}
	err = json.NewDecoder(io.LimitReader(reply.Body, manifestMost)).Decode(&said)
	token := cmp.Or(said.Token, said.Access)
	if reply.StatusCode != http.StatusOK || err != nil || token == "" {
		return r.failure(ctx, session.CodePullForbidden, errors.Join(errors.New(reply.Status), err))
	}
	r.header = "Bearer " + token
	return nil
}

// failure is why a pull failed.
func (r *registry) failure(ctx context.Context, code session.Code, err error) error {
	if ended := ended(ctx); ended != nil {
		return ended
	}
	phrase := map[session.Code]string{session.CodePullNotFound: "pullNotFound",
		session.CodePullForbidden: "pullForbidden", session.CodePullUnavailable: "pullUnreachable"}[code]
	return session.Because(code, session.Say(phrase, session.Fill("image", r.image)), session.Say(phrase+"Hint")).
		Failure(err)
}

// read reads a small part as a whole.
func (r *registry) read(ctx context.Context, part, accept string, most int64) ([]byte, error) {
	reply, err := r.get(ctx, part, accept)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(io.LimitReader(reply.Body, most))
	if err != nil {
		return nil, r.failure(ctx, session.CodePullUnavailable, err)
	}
	return data, nil
}

// descriptor names a part by its digest.
type descriptor struct {
	Digest   string `json:"digest"`
	Size     int64  `json:"size"`
	Platform struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
	} `json:"platform"`
}

// manifest is an image, or an index of images for several platforms.
type manifest struct {
	Manifests []descriptor `json:"manifests"`
	Config    descriptor   `json:"config"`
	Layers    []descriptor `json:"layers"` // lowest first
}

// accepted are the kinds of manifests that are read.
const accepted = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, " +
	"application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json"

// manifest returns the image of a tag for this computer's architecture.
func (r *registry) manifest(ctx context.Context, tag string) (m manifest, err error) {
	for range 2 {
		data, err := r.read(ctx, "manifests/"+tag, accepted, manifestMost)
		if err != nil {
			return m, err
		}
		m = manifest{}
		if err := json.Unmarshal(data, &m); err != nil {
			return m, r.failure(ctx, session.CodePullUnavailable, err)
		}
		if len(m.Manifests) == 0 {
			break
		}
		tag = ""
		for _, one := range m.Manifests {
			ours := one.Platform.OS == "linux" && one.Platform.Architecture == runtime.GOARCH
			if ours && idRule.MatchString(one.Digest) {
				tag = one.Digest
				break
			}
		}
		if tag == "" {
			break
		}
	}
	if !idRule.MatchString(m.Config.Digest) {
		return m, session.Because(session.CodeEngineUnsupported,
			session.Say("pullWrongPlatform", session.Fill("image", r.image)), session.Say("pullWrongPlatformHint")).
			Failure(errors.New("there is no image for linux/" + runtime.GOARCH))
	}
	return m, nil
}
