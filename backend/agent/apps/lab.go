package apps

import (
	"context"
	_ "embed"
	"fmt"

	"slipway/backend/session"
	"slipway/backend/terminal"
)

// The extension with which the pages of JupyterLab and Notebook 7 show what cells print that run already.
//
//go:embed lab/package.json
var labPackage string

//go:embed lab/static/remoteEntry.js
var labScript string

// labDir has it in the container, in the directory that the session's user has there. It is not in the home, which
// other sessions may have, too.
const labDir = "/opt/slipway/lab"

// labInstall writes it. A page that is loaded meanwhile finds either the old script or the new one.
const labInstall = `umask 022 && mkdir -p "$1/static" && printf %s "$3" >"$1/static/new" &&
	mv -f "$1/static/new" "$1/static/remoteEntry.js" && printf %s "$2" >"$1/package.json"`

// installLab writes the extension into a session.
func installLab(ctx context.Context, g Guest) error {
	conn, err := g.Exec(ctx, session.ExecRequest{
		Command: []string{"sh", "-c", labInstall, "sh", labDir + "/slipway-live", labPackage, labScript},
	})
	if err != nil {
		return err
	}
	code, err := terminal.RunExec(ctx, terminal.NewConn(conn), terminal.ExecIO{})
	if err == nil && code != 0 {
		err = fmt.Errorf("it ended with code %d", code)
	}
	return err
}
