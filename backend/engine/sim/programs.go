package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway/backend/engine/sim/notebook"
	"slipway/backend/engine/sim/shell"
	"slipway/backend/session"
)

// programs are what an image has beside the utilities of a shell: with Jupyter a
// notebook, whose Python runs in the browser.
func (s *containers) programs(image string, files *shell.FS) map[string]shell.Program {
	if !s.hasAny(image, "jupyter") {
		return nil
	}
	serve := leftOut
	if s.config.Notebook != nil {
		serve = s.serveNotebooks(files)
	}
	return map[string]shell.Program{"jupyter-lab": serve, "jupyter-notebook": serve}
}

// leftOut stands for the notebook in a build of Slipway that does not carry one,
// such as that for agents, which is kept small.
func leftOut(_ context.Context, call shell.Call) int {
	//nolint:errcheck // nobody is left to tell
	fmt.Fprintln(call.Err, "jupyter-lab: this build of Slipway has no notebook for simulated sessions. "+
		"Use the full program or a machine with Docker.")
	return 127
}

func (s *containers) serveNotebooks(files *shell.FS) shell.Program {
	handler := notebook.Handler(notebook.Config{Files: simulatedFS{files}, Home: session.Home, Page: s.config.Notebook,
		Clock: s.config.Clock})
	return func(ctx context.Context, call shell.Call) int {
		return serveNotebook(ctx, call.World, call.Args, call.Out, handler)
	}
}

// hasAny goes by the name of an image, or of that from which it was made.
func (s *containers) hasAny(ref string, words ...string) bool {
	if image, ok := s.images.find(ref); ok {
		ref = image.Refs[0]
		if image.Origin != nil {
			ref = image.Origin.Base
		}
	}
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(ref, word) })
}

// serveNotebook takes the port that its arguments name. The other settings of
// Jupyter that Slipway gives say what is so here in any case.
func serveNotebook(ctx context.Context, w *shell.World, args []string, out io.Writer, handler http.Handler) int {
	port := 8888
	for _, arg := range args {
		if text, ok := strings.CutPrefix(arg, "--port="); ok {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1024 || n > 65535 {
				//nolint:errcheck // nobody is left to tell
				fmt.Fprintln(out, "the port must be a number from 1024 to 65535")
				return 2
			}
			port = n
		}
	}
	listener, err := w.Listen(port)
	if err != nil {
		fmt.Fprintf(out, "port %d: Address already in use\n", port) //nolint:errcheck // nobody is left to tell
		return 1
	}
	fmt.Fprintf(out, "the notebook answers on port %d; its Python runs in the browser\n",
		port) //nolint:errcheck // nobody is left to tell
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { server.Close() }) //nolint:errcheck // it ends either way
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintf(out, "%v\n", err) //nolint:errcheck // nobody is left to tell
		return 1
	}
	return 130
}
