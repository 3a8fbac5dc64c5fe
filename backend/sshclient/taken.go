package sshclient

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// taken reports which names mean a host to the person already, by an entry of their own configuration or because they
// have logged in there: a session, whose name may come from another machine, must not stand in for it. Only what is
// written there itself is looked at, not what it includes.
func (c *Client) taken() func(string) bool {
	configured, known := c.configured(), c.visited()
	return func(name string) bool { return configured(name) || known(name) }
}

// visited reports which names the person's file of known hosts has, many of them as digests only.
func (c *Client) visited() func(string) bool {
	data, err := os.ReadFile(filepath.Join(c.config.Person, "known_hosts"))
	if err != nil {
		return func(string) bool { return false }
	}
	plain := map[string]bool{}
	var digests [][2][]byte // salt and HMAC-SHA1
	for line := range strings.SplitSeq(string(data), "\n") {
		words := strings.Fields(line)
		if len(words) > 1 && strings.HasPrefix(words[0], "@") {
			words = words[1:]
		}
		if len(words) < 2 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if parts := strings.Split(words[0], "|"); len(parts) == 4 && parts[1] == "1" {
			salt, saltErr := base64.StdEncoding.DecodeString(parts[2])
			sum, sumErr := base64.StdEncoding.DecodeString(parts[3])
			if saltErr == nil && sumErr == nil {
				digests = append(digests, [2][]byte{salt, sum})
			}
			continue
		}
		for host := range strings.SplitSeq(words[0], ",") {
			host, _, _ = strings.Cut(strings.TrimPrefix(host, "["), "]")
			plain[strings.ToLower(host)] = true
		}
	}
	return func(name string) bool {
		name = strings.ToLower(name)
		return plain[name] || slices.ContainsFunc(digests, func(d [2][]byte) bool {
			mac := hmac.New(sha1.New, d[0])
			mac.Write([]byte(name))
			return bytes.Equal(mac.Sum(nil), d[1])
		})
	}
}

// configured reports which names the person's own configuration has entries for.
func (c *Client) configured() func(string) bool {
	var patterns []string
	data, err := os.ReadFile(filepath.Join(c.config.Person, "config"))
	if err != nil {
		return func(string) bool { return false }
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		words := strings.Fields(strings.Replace(line, "=", " ", 1))
		if len(words) > 1 && strings.EqualFold(words[0], "host") {
			patterns = append(patterns, words[1:]...)
		}
	}
	return func(name string) bool {
		return slices.ContainsFunc(patterns, func(pattern string) bool {
			pattern = strings.Trim(pattern, `"`)
			if strings.Trim(pattern, "*?") == "" || strings.HasPrefix(pattern, "!") {
				return false // an entry for all hosts is for none in particular
			}
			matched, err := filepath.Match(strings.ToLower(pattern), strings.ToLower(name))
			return matched && err == nil
		})
	}
}
