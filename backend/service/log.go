package service

import (
	"context"
	"errors"
	"io"
	"log/slog"
)

// logTo returns a log in text. What failed only because its caller gave up, as everything does when the process stops,
// needs no attention and is not in it.
func logTo(file io.Writer) *slog.Logger { return slog.New(attentive{slog.NewTextHandler(file, nil)}) }

type attentive struct{ slog.Handler }

func (a attentive) Handle(ctx context.Context, record slog.Record) error {
	wanted := true
	record.Attrs(func(attr slog.Attr) bool {
		err, is := attr.Value.Any().(error)
		wanted = !is || !errors.Is(err, context.Canceled)
		return wanted
	})
	if !wanted {
		return nil
	}
	return a.Handler.Handle(ctx, record)
}

func (a attentive) WithAttrs(attrs []slog.Attr) slog.Handler {
	return attentive{a.Handler.WithAttrs(attrs)}
}

func (a attentive) WithGroup(name string) slog.Handler { return attentive{a.Handler.WithGroup(name)} }
