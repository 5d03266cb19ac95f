// Command lockcheck tests distributed locks under faults. Its files hold the
// commands: flags, wiring and exit codes, nothing else.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"lockcheck/internal/runs"
	"lockcheck/internal/spelling"
)

// Exit codes, as `lockcheck help exit-codes` explains them.
const (
	exitOK          = 0
	exitViolation   = 1
	exitUndecided   = 2
	exitBroken      = 3
	exitUsage       = 64
	exitInterrupted = 130
)

// exitError carries an exit code. Its message is shown unless it is empty.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// system is what the commands use of the operating system, so that the whole
// command line can be tested in process.
type system struct {
	args []string
	// program is the name by which lockcheck was called; "" for lockcheck.
	program        string
	stdin          io.Reader
	stdout, stderr io.Writer
	env            func(string) string
	// terminal and width describe stdout; progressTerminal describes stderr.
	terminal, progressTerminal bool
	width                      int
	// signals delivers interrupts.
	signals <-chan os.Signal
	binary  func() (string, error)
}

func main() {
	signals, stop := interrupts()
	defer stop()
	os.Exit(run(context.Background(), &system{
		args: os.Args[1:], program: os.Args[0], stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: os.Getenv,
		terminal: term.IsTerminal(int(os.Stdout.Fd())), progressTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		width: terminalWidth(), signals: signals, binary: os.Executable,
	}))
}

func terminalWidth() int {
	width, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// run executes the command line and returns the exit code.
func run(ctx context.Context, s *system) int {
	root := rootCommand(s)
	root.SetArgs(s.args)
	root.SetIn(s.stdin)
	root.SetOut(s.stdout)
	root.SetErr(s.stderr)
	err := misspelt(root, s.args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	code := exitCode(err)
	if err != nil && err.Error() != "" {
		fmt.Fprintln(s.stderr, "lockcheck:", err)
	}
	return code
}

// misspelt is the error for a command that there is not.
func misspelt(root *cobra.Command, args []string) error {
	root.InitDefaultHelpCmd()
	cmd, rest, err := root.Find(args)
	if err != nil || !cmd.HasSubCommands() || len(rest) == 0 || strings.HasPrefix(rest[0], "-") || strings.HasPrefix(rest[0], cobra.ShellCompRequestCmd) {
		return nil // cobra has an error of its own, or none
	}
	return &runs.UsageError{Err: &spelling.UnknownError{What: "command", Name: rest[0], Known: commandsOf(cmd)}}
}

// commandsOf lists the commands under another one that are for users.
func commandsOf(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	return names
}

// flagError is the error for a flag, with what may have been meant by one that there is not.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		if near := spelling.Nearest(unknown.GetSpecifiedName(), known); near != "" {
			err = fmt.Errorf("%w; did you mean --%s?", err, near)
		}
	}
	return &runs.UsageError{Err: err}
}

// exitCode finds the code that an error carries. Errors of cobra itself are
// about usage; others mean that lockcheck could not do its work.
func exitCode(err error) int {
	var carried *exitError
	var usage *runs.UsageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &carried):
		return carried.code
	case errors.As(err, &usage):
		return exitUsage
	default:
		return exitBroken
	}
}

func rootCommand(s *system) *cobra.Command {
	root := &cobra.Command{
		Use:   "lockcheck",
		Short: "Does a distributed lock keep two processes apart when things go wrong?",
		Long: `lockcheck starts the servers of a distributed lock, lets worker processes update
data under it, pauses, cuts off and confuses both, and judges what happened.

With no lock named, "lockcheck test" needs nothing but itself.

"lockcheck completion bash", or zsh, or fish, prints what lets that shell
complete locks, faults, guards, reproductions and files.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          usageArgs(cobra.NoArgs),
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Version:       thisBuild().String(),
	}
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "FlagUsages", fmt.Sprintf("FlagUsagesWrapped %d", s.columns())))
	root.SetHelpCommand(helpCommand(root))
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(
		testCommand(s), compareCommand(s), mergeCommand(s), sweepCommand(s), huntCommand(s), adviseCommand(s), profileCommand(s), reproCommand(s), findingsCommand(s), claimsCommand(s), guideCommand(s), analyzeCommand(s), serveCommand(s),
		listCommand(s), clientCommand(s), doctorCommand(s), cleanCommand(s),
		imagesCommand(s), exitCodesTopic(),
		workerCommand(s), clientCheckProcess(s), resourceCommand(s), observerCommand(s), serverCommand(s), agentCommand(s), stageCommand(s), reapCommand(s),
		launchCommand(), traceCommand(s), swarmPartCommand(s), nowCommand(s), holdCommand(s), referenceCommand(), completionCommand(s),
	)
	addCompletion(root)
	return root
}

// helpCommand shows the help of a command or topic. That of cobra takes a name
// that does not exist for the program itself.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "tell more about a command or topic",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return &runs.UsageError{Err: fmt.Errorf("there is no help about %q%s", strings.Join(args, " "), spelling.Hint(args[len(args)-1], commandsOf(cmd)))}
			}
			cmd.InitDefaultHelpFlag()
			cmd.InitDefaultVersionFlag()
			return cmd.Help()
		},
	}
}

// usageArgs makes the errors of an argument check errors of usage.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return &runs.UsageError{Err: err}
		}
		return nil
	}
}

const exitCodes = `Exit codes:
    0  valid, or exactly what was expected
    1  violation of a required property or of a threshold, or a run that is not
       what was expected
    2  undecided: too little happened to tell, no fault was proven, or runs of a
       comparison are missing
    3  broken: the run itself failed
   64  usage: what was asked for makes no sense
  130  interrupted`

// exitCodesTopic is shown by "lockcheck help exit-codes".
func exitCodesTopic() *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "what the exit codes mean", Long: exitCodes}
}
