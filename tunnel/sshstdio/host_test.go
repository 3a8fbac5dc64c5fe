package sshstdio

import (
	"errors"
	"strings"
	"testing"

	"slipway/tunnel"
)

func TestHostsAreReadAsSSHReadsThem(t *testing.T) {
	for text, want := range map[string]Host{
		"lab":                         {Name: "lab"},
		" lab ":                       {Name: "lab"},
		"me@lab":                      {User: "me", Name: "lab"},
		"me@lab:2222":                 {User: "me", Name: "lab", Port: 2222},
		"ssh://me@lab.example.org:22": {User: "me", Name: "lab.example.org", Port: 22},
		"ssh://lab/":                  {Name: "lab"},
		"ssh://a%40b@lab":             {User: "a@b", Name: "lab"},
		"a@dom@lab":                   {User: "a@dom", Name: "lab"},
		"[::1]:22":                    {Name: "::1", Port: 22},
		"[fe80::1%eth0]":              {Name: "fe80::1%eth0"},
		"2001:db8::1":                 {Name: "2001:db8::1"},
		"10.0.0.7:22":                 {Name: "10.0.0.7", Port: 22},
	} {
		if got, err := ParseHost(text); err != nil || got != want {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
}

func TestHostsThatCouldBeReadOtherwiseAreRefused(t *testing.T) {
	for _, text := range []string{
		"", "-oProxyCommand=id", "me@-oProxyCommand=id", "-l@lab", "lab:0", "lab:65536", "lab:+22", "lab:022", "lab:x",
		"lab;id", "lab id", "lab`id`", "$(id)", "lab\nid", "lab\x00", "lab%h", "me:secret@lab", "ssh://me:secret@lab",
		"ssh://me%3Asecret@lab", "m e@lab", "lab/x", "[::1", "[::1]x", "@lab", "me@", "ssh://%zz@lab", "ssh://",
	} {
		got, err := ParseHost(text)
		var fault *tunnel.Fault
		if !errors.As(err, &fault) || fault.Code != "agent_connect_invalid" {
			t.Errorf("%q is %+v, %v", text, got, err)
		} else if strings.Contains(fault.Error(), "secret") {
			t.Errorf("the error of %q repeats a password: %v", text, err)
		}
	}
}

func FuzzParseHost(f *testing.F) {
	for _, seed := range []string{"me@lab:22", "ssh://me@[::1]:22", "-oX=y", "a@b@c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := ParseHost(text)
		if err != nil {
			return
		}
		again, err := ParseHost(h.String())
		if err != nil || again != h {
			t.Errorf("%q is %+v, and %q is %+v, %v", text, h, h.String(), again, err)
		}
		options, destination := h.args()
		for _, arg := range append(options, destination) {
			if arg == "" || strings.ContainsAny(arg, " \t\n\x00;|&$`'\"<>(){}*?!#~") {
				t.Errorf("%q makes the argument %q", text, arg)
			}
		}
		if strings.HasPrefix(destination, "-") || strings.HasPrefix(h.User, "-") {
			t.Errorf("%q makes an option", text)
		}
	})
}
