package hub

import (
	"context"
	"fmt"
	"strconv"

	"slipway/backend/session"
)

// MostLaunches is how many sessions can be launched at once.
const MostLaunches = 10

// Launched is the outcome of one of several launches: a session or an error.
type Launched struct {
	Session session.Session
	Err     error
}

// launches launches sessions, notes them among the recents, and makes recipes of both.
type launches struct {
	*state
	placement *placement
	finder    *finder
	person    *person
	images    *images
}

// LaunchMany launches count sessions of one spec in the order of their numbers,
// which are added to its name. A spec that is wrong launches none and is an
// error; after that each has an outcome of its own. Sent again with its key it
// returns the sessions of the first time and launches what failed then.
func (l *launches) LaunchMany(ctx context.Context, req LaunchRequest, count int) ([]Launched, error) {
	if count < 1 || count > MostLaunches {
		field := session.FieldError{Field: "count", Code: "session_create_invalid-count",
			Message: fmt.Sprintf("%d is not between 1 and %d sessions.", count, MostLaunches),
			Hint:    "Launch more after these."}
		return nil, &session.Error{Code: session.CodeInvalid, Message: field.Message, Hint: field.Hint,
			Fields: []session.FieldError{field}}
	}
	if err := l.checkMany(ctx, req.Owner, req.Spec, count); err != nil {
		return nil, err
	}
	outcomes := make([]Launched, count)
	remembered := false
	for i := range outcomes {
		one := LaunchRequest{Key: numbered(req.Key, "/", i, count), Spec: req.Spec, Owner: req.Owner}
		one.Spec.Name = numbered(req.Spec.Name, "-", i, count)
		s, err := l.launch(ctx, one)
		outcomes[i] = Launched{Session: s, Err: err}
		if err == nil && !remembered {
			l.addRecent(ctx, req, count, s)
			remembered = true
		}
	}
	return outcomes, nil
}

// numbered adds the number of one of several to a text that is not empty.
func numbered(text, separator string, i, count int) string {
	if text == "" || count == 1 {
		return text
	}
	return text + separator + strconv.Itoa(i+1)
}

func nameOr(name, other string) string {
	if name != "" {
		return name
	}
	return other
}

// checkMany judges what all launches have in common. Whether a name is taken is
// the business of each: it is, by itself, when a request is sent again.
func (l *launches) checkMany(ctx context.Context, owner string, spec session.Spec, count int) error {
	var wrong []session.FieldError
	if name := numbered(spec.Name, "-", count-1, count); name != "" {
		if e := session.ValidateName(name); e != nil {
			wrong = append(wrong, *e)
		}
	}
	spec.Name = ""
	p, err := l.placement.Preview(ctx, owner, spec)
	if err != nil {
		return err
	}
	wrong = append(wrong, p.Errors...)
	if len(wrong) == 0 {
		return nil
	}
	return session.Invalid(wrong)
}
