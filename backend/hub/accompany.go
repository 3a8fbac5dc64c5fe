package hub

import (
	"context"
	"fmt"

	"slipway/backend/session"
)

// Accompany does what one request is answered with as an operation, so that
// people see how far it is and may cancel it. It ends with ctx, or when it is
// cancelled, and returns when do has.
func (o *operations) Accompany(ctx context.Context, kind OperationKind, subject string,
	do func(context.Context, *Work) error) error {
	ended := make(chan error, 1)
	run := func(life context.Context, work *Work) error {
		joint, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(life, cancel)()
		err := do(joint, work)
		ended <- err
		if err != nil && ctx.Err() != nil {
			err = &session.Error{Code: "operation_run_broken-off", Message: "Whoever asked for it has gone.",
				Hint: "Ask for it again.", Err: err}
		}
		return err
	}
	name := subject
	for n := 2; ; n++ {
		_, err := o.start(kind, name, run)
		if err == nil {
			return <-ended
		}
		if n > operationsMost {
			return err
		}
		name = fmt.Sprintf("%s (%d)", subject, n)
	}
}
