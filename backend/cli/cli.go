// Package cli is the command line: everything that the user interface does, over the same loopback API. It prints
// tables for people and, with -o json or yaml, the objects of the API, and exits with documented codes (see [ExitOK]).
// If a command needs a control plane and none is running, it starts one in the background.
package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/client"
	"slipway/backend/daemon"
	"slipway/backend/place"
	"slipway/backend/session"
)

// Config connects the command line to the services of the program.
type Config struct {
	Version api.Version
	// Serve runs the control plane until ctx ends.
	Serve func(ctx context.Context, opts ServeOptions) error
	// Agent runs the agent of this machine by itself until ctx ends.
	Agent func(ctx context.Context, opts AgentOptions) error
	// Demo serves a demonstration until ctx ends.
	Demo func(ctx context.Context, opts DemoOptions) error
	Args []string // without the program's name

	Stdin  io.Reader // a terminal if it is an *os.File that is one
	Stdout io.Writer
	Stderr io.Writer

	Env        func(string) string // nil: os.Getenv
	Executable string              // started as a control plane; empty: this program
	Now        func() time.Time    // for ages in tables; nil: time.Now
}

// ServeOptions configures a control plane.
type ServeOptions struct {
	Home   place.Home
	Engine string      // docker, slurm, sim or auto
	Port   int         // 0: the one used last, else 7421, else any
	Ready  func(Ready) // called once, when it responds; may be nil
}

// Ready says where a control plane responds.
type Ready struct {
	URL      string
	LoginURL string // logs a browser in, once
	Engine   string // docker or sim
	Note     string // why this engine was chosen; may be empty
}

// Main runs one command and returns the exit code of the process. ctx must not end on signals: each command handles
// them itself.
func Main(ctx context.Context, config Config) int {
	if config.Env == nil {
		config.Env = os.Getenv
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	p := &program{Config: config, raw: screens{config.Stdout, config.Stderr}, output: outputTable}
	p.Stdout, p.Stderr = &plainWriter{to: config.Stdout}, &plainWriter{to: config.Stderr}
	root := p.rootCommand()
	root.SetArgs(config.Args)
	root.SetIn(config.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	return p.finish(root.ExecuteContext(ctx))
}

// program is one run of the command line.
type program struct {
	Config
	raw    screens
	output string // one of the output formats
	yes    bool   // do not ask for confirmation
}

// The commands, grouped because their methods are too many for one type.
type (
	runCommands      struct{ *program } // launches, recipes and presets
	sessionCommands  struct{ *program } // sessions, the queue, devices and usage
	terminalCommands struct{ *program } // terminals, commands, SSH and apps
	dataCommands     struct{ *program } // images, folders and files
	serviceCommands  struct{ *program } // inference services
	secretCommands   struct{ *program } // secrets and registry logins
	planeCommands    struct{ *program } // the control plane
	agentCommands    struct{ *program } // the agent of this machine and remote agents
)

// The output formats.
const outputTable, outputJSON, outputYAML, outputName = "table", "json", "yaml", "name"

// Commands returns the commands, from which the reference and the man pages are generated.
func Commands() *cobra.Command {
	p := &program{Config: Config{Env: func(string) string { return "" }}}
	root := p.rootCommand()
	root.InitDefaultCompletionCmd()
	return root
}

func (p *program) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "slipway",
		Short: "Compute sessions in containers, on this computer or a lab server",
		Long: `Slipway launches isolated compute sessions in containers and gives each one a
terminal, Jupyter, logs and usage accounts.

Refer to a session by its ID, a unique prefix of it, or its name.

` + exitCodesHelp,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       p.Version.Version,

		SuggestionsMinimumDistance: 2,

		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains([]string{outputTable, outputJSON, outputYAML, outputName}, p.output) {
				return usagef("Unknown output format %q: use table, json, yaml or name", p.output)
			}
			return p.useMachine(cmd)
		},
	}
	root.PersistentFlags().StringVarP(&p.output, "output", "o", outputTable,
		"output format: table, json, yaml or name (names only)")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return failAs(ExitUsage, session.CodeUsage, sentence(err.Error()), "See "+cmd.CommandPath()+" --help.")
	})
	root.AddGroup(&cobra.Group{ID: groupSessions, Title: "Sessions:"},
		&cobra.Group{ID: groupPlane, Title: "Slipway itself:"})
	launch, sessions, terminals := runCommands{p}, sessionCommands{p}, terminalCommands{p}
	data, plane := dataCommands{p}, planeCommands{p}
	addTo(root, groupSessions, launch.runCommand(), launch.upCommand(), sessions.psCommand(), sessions.showCommand(),
		sessions.logsCommand(), terminals.attachCommand(), terminals.execCommand(), terminals.sshCommand(),
		sessions.stopCommand(), launch.continueCommand(), sessions.renameCommand(), data.cpCommand(),
		data.folderCommand(), serviceCommands{p}.serviceCommand(),
		terminals.appsCommand(), terminals.openCommand(), sessions.historyCommand(), sessions.compareCommand(),
		data.imageCommand(), data.commitCommand(), data.environmentCommand(), sessions.queueCommand(),
		sessions.priorityCommand(), launch.moveCommand(), sessions.resizeCommand(), sessions.remindCommand(),
		sessions.keepCommand(), sessions.idleCommand(), sessions.gpuCommand(), sessions.usageCommand(),
		launch.presetCommand(), launch.recipeCommand(), sessions.tagCommand())
	addTo(root, groupPlane, plane.serveCommand(), plane.demoCommand(), agentCommands{p}.agentCommand(),
		plane.loginCommand(), terminals.openLinkCommand(), plane.shutdownCommand(), plane.doctorCommand(),
		plane.settingsCommand(), secretCommands{p}.secretCommand(), secretCommands{p}.registryCommand(),
		plane.useCommand(), plane.diagnosticsCommand(), plane.versionCommand(),
		terminals.sshConfigCommand(), terminals.sshProxyCommand())
	p.withDefaults(root)
	return root
}

// noSuchCommand refuses arguments of a command that has only subcommands.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := cmd.CommandPath() + " --help lists the commands."
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "Did you mean " + strings.Join(near, " or ") + "?"
	}
	return failAs(ExitUsage, session.CodeUsage, "There is no command "+cmd.CommandPath()+" "+args[0]+".", hint)
}

// The groups of the help.
const groupSessions, groupPlane = "sessions", "plane"

func addTo(root *cobra.Command, group string, commands ...*cobra.Command) {
	for _, command := range commands {
		command.GroupID = group
		root.AddCommand(command)
	}
}

// interruptible returns a context that ends on Ctrl-C and SIGTERM.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}

// runE is the code of a command, as cobra calls it.
type runE = func(cmd *cobra.Command, args []string) error

// runs sets the code of a command and returns the command.
func runs(cmd *cobra.Command, run runE) *cobra.Command {
	cmd.RunE = run
	return cmd
}

// command finds or starts the control plane and calls work, which Ctrl-C cancels.
func (p *program) command(work func(ctx context.Context, c *caller, args []string) error) runE {
	return func(cmd *cobra.Command, args []string) error {
		ctx, cancel := interruptible(cmd.Context())
		defer cancel()
		c, err := p.connect(ctx)
		if err != nil {
			return err
		}
		return work(ctx, c, args)
	}
}

// withDefaults completes a command and its subcommands: a command with subcommands prints its help, every other one
// checks and completes its arguments by its usage line.
func (p *program) withDefaults(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		p.withDefaults(sub)
	}
	switch {
	case cmd.HasSubCommands():
		cmd.Args = noSuchCommand
		if cmd.RunE == nil {
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
		return
	case cmd.ValidArgsFunction == nil:
		cmd.ValidArgsFunction = p.completeArgument
	}
	cmd.Args = checkArguments
}

// options matches the options in a usage line, with their values.
var options = regexp.MustCompile(`\[[^A-Z][^\]]*\]|--\S* \S+`)

// anyCommand is the argument of a usage line whose words may be anything, also empty.
const anyCommand = "[COMMAND…]"

// argumentsOf returns the arguments in the usage line of a command, such as SESSION, [APP] or [COMMAND…].
func argumentsOf(cmd *cobra.Command) []string {
	use := strings.NewReplacer("[-- COMMAND…]", anyCommand, "-- COMMAND…", anyCommand).Replace(cmd.Use)
	return strings.Fields(options.ReplaceAllString(use, ""))[1:]
}

// checkArguments compares arguments with the usage line. Those in brackets are optional, those with … repeatable.
func checkArguments(cmd *cobra.Command, args []string) error {
	names := argumentsOf(cmd)
	least, most := len(names), len(names)
	filled := len(slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == anyCommand }))
	if filled < len(names) && cmd.ArgsLenAtDash() == 0 { // all are of a command
		filled = 0
	}
	for _, name := range names {
		if strings.HasPrefix(name, "[") {
			least--
		}
		if strings.Contains(name, "…") {
			most = math.MaxInt
		}
	}
	var message string
	switch {
	case len(args) < least:
		message = "Missing argument: " + names[len(args)] + "."
	case len(args) > most:
		message = "Unexpected argument: " + args[most] + "."
	case slices.Contains(args[:min(len(args), filled)], ""):
		message = "An argument is empty."
	default:
		return nil
	}
	return failAs(ExitUsage, session.CodeUsage, message, "Usage: "+cmd.UseLine())
}

// here calls work, which Ctrl-C cancels. It needs no control plane.
func (p *program) here(work func(ctx context.Context, home place.Home) error) runE {
	return func(cmd *cobra.Command, _ []string) error {
		ctx, cancel := interruptible(cmd.Context())
		defer cancel()
		home, err := place.FindHome(p.Env)
		if err != nil {
			return err
		}
		return work(ctx, home)
	}
}

// The exit codes of every command. run --wait of a batch session, exec, attach and run with a terminal exit with the
// code of the command or shell instead.
const (
	ExitOK          = 0
	ExitFailure     = 1   // anything that has no code of its own
	ExitUsage       = 2   // the command line is wrong
	ExitNotFound    = 3   // no such session, app or image
	ExitInvalid     = 4   // the spec has values that are wrong
	ExitUnavailable = 5   // the control plane, or what it needs, does not answer
	ExitTimeout     = 124 // --wait-timeout passed
	ExitNoResult    = 125 // the session ended and its command has no exit code
	ExitNoProgram   = 126 // exec: the command cannot be executed
	ExitNoCommand   = 127 // exec: there is no such command
	ExitInterrupted = 130 // ended by Ctrl-C
)

const exitCodesHelp = `Exit codes: 0 success, 1 failure, 2 wrong command line, 3 not found, 4 wrong session spec,
5 Slipway is not running, 124 --wait-timeout passed, 125 the session ended without an exit code
of its command, 126 and 127 the command cannot be run or was not found, 130 interrupted.
run --wait, exec and attach exit with the exit code of the command.`

// Told returns an error for [Config] with which the command line prints problem unchanged.
func Told(problem session.Error) error { return &client.Refused{Problem: problem} }

// failure is an error of the command line itself.
type failure struct {
	problem session.Error
	exit    int
}

func (e *failure) Error() string { return e.problem.Error() }

// fail returns a failure with the usual exit code for its code.
func fail(code session.Code, message, hint string) error {
	return failAs(exitOf(code, code.Status()), code, message, hint)
}

func failAs(exit int, code session.Code, message, hint string) error {
	return &failure{session.Error{Code: code, Message: message, Hint: hint}, exit}
}

// usagef returns the failure of a wrong command line.
func usagef(format string, args ...any) error {
	return failAs(ExitUsage, session.CodeUsage, sentence(fmt.Sprintf(format, args...)),
		"Add --help to the command for its usage.")
}

// exitError ends the program with a code and prints nothing.
type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// exitWith returns err or, if that is nil, an error with an exit code other than 0.
func exitWith(code int, err error) error {
	if err == nil && code != 0 {
		return &exitError{code}
	}
	return err
}

// failedIf returns err or, if that is nil and failed is set, an error with the exit code [ExitFailure].
func failedIf(failed bool, err error) error {
	if failed {
		return exitWith(ExitFailure, err)
	}
	return err
}

// finish prints err and returns the exit code.
func (p *program) finish(err error) int {
	var silent *exitError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &silent):
		return silent.code
	case errors.Is(err, context.Canceled):
		return ExitInterrupted
	}
	problem, code := describe(err)
	switch p.output {
	case outputJSON:
		encoder := json.NewEncoder(p.Stderr)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(problem) // there is no other place to report it
		return code
	case outputYAML:
		_ = writeYAML(p.Stderr, problem)
		return code
	}
	if n := len(problem.Fields); n > 1 {
		problem.Message, problem.Hint = fmt.Sprintf("%d fields are wrong.", n), "" // each field has its own hint
	}
	fmt.Fprintf(p.Stderr, "slipway: %s\n", problem.Message)
	for _, field := range problem.Fields {
		if field.Message == problem.Message {
			continue // the only one, printed above
		}
		fmt.Fprintf(p.Stderr, "  %s: %s\n", field.Field, strings.TrimSpace(field.Message+" "+field.Hint))
	}
	if problem.Hint != "" {
		fmt.Fprintf(p.Stderr, "  %s\n", problem.Hint)
	}
	fmt.Fprintf(p.Stderr, "  (%s)\n", problem.Code)
	return code
}

// describe returns the problem that describes an error, and its exit code.
func describe(err error) (session.Error, int) {
	var refused *client.Refused
	var own *failure
	var about *session.Error
	switch {
	case errors.As(err, &refused):
		return refused.Problem, exitOf(refused.Problem.Code, cmp.Or(refused.Status, refused.Problem.Code.Status()))
	case errors.As(err, &own):
		return own.problem, own.exit
	case errors.As(err, &about):
		exit := ExitFailure
		if errors.Is(err, client.ErrNotStarted) {
			exit = ExitUnavailable
		}
		return session.Error{Code: about.Code, Message: about.Message, Hint: about.Hint}, exit
	case errors.Is(err, daemon.ErrNotRunning):
		return session.Error{Code: session.CodeAgentNotFound, Message: "No agent runs on this machine.",
			Hint: "Start it: slipway agent start"}, ExitUnavailable
	case errors.Is(err, client.ErrNotServing), client.IsLost(err):
		return session.Error{Code: session.CodeServerUnreachable, Message: "The control plane does not answer.",
			Hint: "Find out why with slipway doctor, or start it with slipway serve."}, ExitUnavailable
	}
	return session.Error{Code: session.CodeCommandFailed, Message: sentence(err.Error())}, ExitFailure
}

// exitOf returns the exit code for a code with an HTTP status.
func exitOf(code session.Code, status int) int {
	byCode := map[session.Code]int{ // as shells do
		session.CodeProcessNotFound: ExitNoCommand, session.CodeProcessForbidden: ExitNoProgram}
	byStatus := map[int]int{http.StatusNotFound: ExitNotFound, http.StatusBadRequest: ExitInvalid,
		http.StatusUnprocessableEntity: ExitInvalid, http.StatusServiceUnavailable: ExitUnavailable}
	return cmp.Or(byCode[code], byStatus[status], ExitFailure)
}

// sentence capitalizes text and ends it with a full stop.
func sentence(text string) string {
	if text == "" {
		return text
	}
	return strings.TrimSuffix(strings.ToUpper(text[:1])+text[1:], ".") + "."
}
