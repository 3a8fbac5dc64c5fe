package session

import (
	"slices"
	"strings"
)

// secretWords mark a variable's name as that of a secret wherever they appear
// in it.
var secretWords = []string{
	"AUTH", "ACCESS", "SECRET", "KEY", "PASSWORD", "PASSWD", "PWD", "TOKEN", "PRIVATE", "CREDENTIAL", "JWT",
	"CERTIFICATE", "SSH", "ENCRYPT", "SIGNATURE", "SALT", "PASSPHRASE",
}

// SecretName reports whether a variable of this name looks as if its value
// were secret. Such a value is never shown, and never written to history,
// recipes or addresses. A name such as MONKEY is taken for a secret too: to
// hide too much costs less than to show one.
func SecretName(name string) bool {
	upper := strings.ToUpper(name)
	for _, word := range secretWords {
		if strings.Contains(upper, word) {
			return true
		}
	}
	return strings.HasSuffix(upper, "PASS") || strings.HasSuffix(upper, "_PW") ||
		slices.Contains(strings.Split(upper, "_"), "PIN")
}

// Redacted returns spec with the value of every secret-looking variable
// replaced by mask. An empty value stays empty. The receiver is left as it was.
func (s Spec) Redacted(mask string) Spec {
	s.Env = slices.Clone(s.Env)
	for i, v := range s.Env {
		if v.Value != "" && SecretName(v.Name) {
			s.Env[i].Value = mask
		}
	}
	return s
}
