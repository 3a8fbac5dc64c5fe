package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"slipway/backend/session"
)

// Vault keeps the values of secrets, by keys, and says where: in the keyring of the computer or in a file.
type Vault interface {
	Set(key, value string) (kept string, err error)
	Get(key, kept string) (string, error)
	Delete(key string) error
}

// SecretKind is what a secret is for.
type SecretKind string

// The kinds of secrets: a variable of sessions, and a login to a registry.
const (
	SecretVariable SecretKind = "variable"
	SecretRegistry SecretKind = "registry"
)

// Secret describes a secret of the user. Its value is only in the [Vault].
type Secret struct {
	Kind      SecretKind `json:"kind"`
	Name      string     `json:"name"`           // of the variable, or host of the registry
	User      string     `json:"user,omitempty"` // of a registry login
	Kept      string     `json:"kept"`           // keyring or file
	UpdatedAt time.Time  `json:"updatedAt"`
}

// SecretContent sets a secret.
type SecretContent struct {
	Kind  SecretKind `json:"kind"`
	Name  string     `json:"name"` // of a registry: its host or address
	Value string     `json:"value"`
	User  string     `json:"user,omitempty"` // of a registry login
}

const (
	secretsKey  = "hub.secrets"
	secretsMost = 200
)

// secrets has the secrets of the user.
type secrets struct {
	*shared
	vault    Vault
	changing sync.Mutex // held while the vault, which may ask its person, and the list change
	list     []Secret   // sorted; guarded by mu

	author func(context.Context) session.GitAuthor // see [Config]
}

func (s *secrets) load() {
	s.list = read[[]Secret](s.shared, secretsKey, "the list of secrets cannot be read; starting with none")
}

// Secrets lists the secrets of the user, registry logins last.
func (s *secrets) Secrets() []Secret {
	return locked(s.shared, func() []Secret { return append([]Secret{}, s.list...) })
}

func (s *secrets) find(kind SecretKind, name string) (Secret, bool) {
	list := s.Secrets()
	i := slices.IndexFunc(list, Secret{Kind: kind, Name: name}.same)
	if i < 0 {
		return Secret{}, false
	}
	return list[i], true
}

func (s Secret) same(other Secret) bool { return s.Kind == other.Kind && s.Name == other.Name }

// key is that of the value in the vault.
func (s Secret) key() string { return string(s.Kind) + "/" + s.Name }

// SetSecret sets the value of a secret, new or not. It fails with settings_update_invalid and Fields, or with
// settings_update_failed.
func (s *secrets) SetSecret(content SecretContent) (Secret, error) {
	one := Secret{Kind: content.Kind, Name: content.Name, UpdatedAt: s.now().UTC()}
	value, wrong := content.check(&one)
	if len(wrong) > 0 {
		return Secret{}, session.Refused(session.CodeSettingsInvalid, wrong...)
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	list := slices.DeleteFunc(s.Secrets(), one.same)
	if len(list) >= secretsMost {
		return Secret{}, session.NewError(session.CodeSettingsConflict,
			fmt.Sprintf("There are already %d secrets.", len(list)), "Remove one first.")
	}
	var err error
	if one.Kept, err = s.vault.Set(one.key(), value); err != nil {
		return Secret{}, err
	}
	return one, s.save(append(list, one))
}

// check returns the value to keep, and what is wrong. It sets the name and the user of the secret.
func (c SecretContent) check(one *Secret) (value string, wrong []session.FieldError) {
	required := func(field, message string) {
		wrong = append(wrong, session.FieldError{Field: field, Kind: session.KindRequired, Message: message,
			Hint: "Enter it."})
	}
	if c.Value == "" {
		required("value", "The value is missing.")
	}
	if one.Kind == SecretVariable {
		for _, e := range []*session.FieldError{session.CheckVariable("name", one.Name),
			session.CheckValue("value", one.Name, c.Value)} {
			if e != nil {
				wrong = append(wrong, *e)
			}
		}
		return c.Value, wrong
	}
	if one.User = c.User; c.User == "" {
		required("user", "The user name is missing.")
	}
	host := session.CleanRegistry(one.Name)
	if one.Kind != SecretRegistry || host == "" {
		return "", append(wrong, session.FieldError{Field: "name", Kind: session.KindInvalid,
			Message: fmt.Sprintf("%q is not the host of a registry.", session.Clip(one.Name)),
			Hint:    "Write for example ghcr.io, nvcr.io or docker.io."})
	}
	one.Name = host
	login, _ := json.Marshal(session.RegistryLogin{Server: host, User: c.User, Password: c.Value}) // only texts
	return string(login), wrong
}

// DeleteSecret deletes a secret. It fails with recipe_read_not-found.
func (s *secrets) DeleteSecret(kind SecretKind, name string) error {
	if kind == SecretRegistry {
		name = cmp.Or(session.CleanRegistry(name), name)
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	one, found := s.find(kind, name)
	if !found {
		return session.NewError(session.CodeRecipeNotFound, fmt.Sprintf("There is no secret %q.", session.Clip(name)),
			"It may have been removed; look at the list again.")
	}
	if err := s.vault.Delete(one.key()); err != nil {
		return err
	}
	return s.save(slices.DeleteFunc(s.Secrets(), one.same))
}

// save stores the list. The caller holds changing.
func (s *secrets) save(list []Secret) error {
	slices.SortFunc(list, func(a, b Secret) int {
		return cmp.Or(-cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	s.saving.Lock()
	defer s.saving.Unlock()
	if err := s.shelf.Save(secretsKey, list); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = list
	return nil
}

// missing returns the secrets that a spec names and that the user does not have.
func (s *secrets) missing(spec session.Spec) []session.FieldError {
	return spec.MissingSecrets(func(name string) bool {
		_, found := s.find(SecretVariable, name)
		return found
	})
}

// confidential returns what travels beside a launch: the values of the spec's secrets, the login for the registry of
// its image, and the author of commits where a person works on folders, or as root.
func (s *secrets) confidential(ctx context.Context, spec session.Spec) (c session.Confidential, err error) {
	if wrong := s.missing(spec); len(wrong) > 0 {
		return c, session.Invalid(wrong)
	}
	if c.Secrets, err = s.values(spec.Secrets); err != nil {
		return c, err
	}
	kind := spec.WithDefaults().Type
	works := kind == session.Interactive || kind == session.Batch
	if s.author != nil && works && (len(spec.Mounts) > 0 || spec.Admin) {
		c.Author = s.author(ctx)
	}
	c.Login, err = s.loginFor(spec.Image)
	return c, err
}

// values returns those of secrets, without those that are not stored.
func (s *secrets) values(names []string) (values []session.EnvVar, err error) {
	for _, name := range names {
		one, found := s.find(SecretVariable, name)
		if !found {
			continue
		}
		value, err := s.vault.Get(one.key(), one.Kept)
		if err != nil {
			return nil, err
		}
		values = append(values, session.EnvVar{Name: name, Value: value})
	}
	return values, nil
}

// forBuild returns what travels beside a build: the values of the project's secrets that are stored and allowed, and
// the logins for the registries of the images that it extends. A secret that is missing is the build's own error.
func (s *secrets) forBuild(p session.Project, allowed []string) (values []session.EnvVar,
	logins []session.RegistryLogin, err error) {
	allowed = slices.DeleteFunc(slices.Clone(allowed), func(name string) bool {
		return !slices.Contains(p.Secrets, name)
	})
	if values, err = s.values(allowed); err != nil {
		return nil, nil, err
	}
	for _, base := range p.Bases {
		if session.LoginFor(base, logins) != nil {
			continue
		}
		login, err := s.loginFor(base)
		if err != nil {
			return nil, nil, err
		}
		if login != nil {
			logins = append(logins, *login)
		}
	}
	return values, logins, nil
}

// loginFor returns the user's login for the registry of an image, nil if there is none.
func (s *secrets) loginFor(ref string) (*session.RegistryLogin, error) {
	one, found := s.find(SecretRegistry, session.RegistryOf(ref))
	if !found || session.CustomizedRef(ref) {
		return nil, nil
	}
	text, err := s.vault.Get(one.key(), one.Kept)
	if err != nil {
		return nil, err
	}
	var login session.RegistryLogin
	if err := json.Unmarshal([]byte(text), &login); err != nil || login.Server != one.Name {
		return nil, session.NewError(session.CodeSettingsFailed, "The login for "+one.Name+" cannot be read.",
			"Log in to the registry again.")
	}
	return &login, nil
}
