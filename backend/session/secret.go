package session

import (
	"regexp"
	"slices"
	"sync"
)

// SecretPattern marks a variable's name as that of a secret, in any case of its
// letters. It is written as a [NamePart] is.
const SecretPattern = `AUTH|ACCESS|SECRET|KEY|PASSWORD|PASSWD|PWD|TOKEN|PRIVATE|CREDENTIAL|JWT|CERTIFICATE|SSH` +
	`|ENCRYPT|SIGNATURE|SALT|PASSPHRASE|PASS$|_PW$|(^|_)PIN(_|$)`

var secretRule = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("(?i)" + SecretPattern) })

// SecretName reports whether a variable of this name looks as if its value
// were secret. Such a value is never shown, and never written to history,
// recipes or addresses. A name such as MONKEY is taken for a secret too: to
// hide too much costs less than to show one.
func SecretName(name string) bool { return secretRule().MatchString(name) }

// Hidden stands for the value of a secret in what is shown to people.
const Hidden = "••••••"

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
