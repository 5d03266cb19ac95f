// Command lockcheck tests distributed locks under faults. Its files hold the
// commands: flags, wiring and exit codes, nothing else.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"lockcheck/internal/buildinfo"
	"lockcheck/internal/runs"
	"lockcheck/internal/spelling"
	"lockcheck/reports"
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
	cobra.EnableCommandSorting = false // help has the commands in the order of their use
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
	if current := currentArgs(s.args); current != nil {
		fmt.Fprintln(s.stderr, "use:", reports.CommandLine(append([]string{"lockcheck"}, current...)))
		s.args = current
	}
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

// misspelt is the error for an unknown command.
func misspelt(root *cobra.Command, args []string) error {
	root.InitDefaultHelpCmd()
	cmd, rest, err := root.Find(args)
	if err != nil || !cmd.HasSubCommands() || len(rest) == 0 || strings.HasPrefix(rest[0], "-") || strings.HasPrefix(rest[0], cobra.ShellCompRequestCmd) {
		return nil // cobra has its own error, or there is none
	}
	if cmd.ValidateArgs(rest[:1]) == nil {
		return nil // an argument of a command that has subcommands, too
	}
	return &runs.UsageError{Err: &spelling.UnknownError{What: "command", Name: rest[0], Known: commandsOf(cmd)}}
}

// commandsOf lists the subcommands that are for users.
func commandsOf(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	return names
}

// flagError is an error about a flag. For an unknown flag it suggests the nearest one.
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

// exitCode finds the code that an error carries. Without one, lockcheck could not do its work.
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
		Long: `lockcheck starts the servers of a distributed lock, lets worker processes update data under the lock, injects faults into both, and judges what happened.

Start with "lockcheck test". It needs no Docker and no other software.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          usageArgs(cobra.NoArgs),
		RunE:          showHelp,
		Version:       buildinfo.This().String(),
	}
	for _, group := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"start", "Start:", []*cobra.Command{testCommand(s), doctorCommand(s), listCommand(s)}},
		{"test", "Test your own lock or application, and look at runs:", []*cobra.Command{initCommand(s), clientCommand(s), analyzeCommand(s), serveCommand(s)}},
		{"choose", "Choose a lock:", []*cobra.Command{guideCommand(s), compareCommand(s), reproCommand(s), huntCommand(s)}},
		{"upkeep", "CI and upkeep:", []*cobra.Command{imagesCommand(s), cleanCommand(s), completionCommand(s)}},
	} {
		root.AddGroup(&cobra.Group{ID: group.id, Title: group.title})
		for _, command := range group.commands {
			command.GroupID = group.id
			root.AddCommand(command)
		}
	}
	root.AddCommand(exitCodesTopic())
	root.AddCommand(ownProcesses(s)...)
	root.SetUsageFunc(usage(s.columns()))
	root.SetHelpCommand(helpCommand(root))
	root.SetHelpCommandGroupID("start")
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.DisableDefaultCmd = true
	for _, command := range withSubcommands(root) {
		command.Long = reflow(command.Long, s.columns())
	}
	addCompletion(root)
	return root
}

func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// group is a command that has subcommands and does nothing by itself.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: usageArgs(cobra.NoArgs), RunE: showHelp}
	cmd.AddCommand(commands...)
	return cmd
}

// defaultWidth is that of a terminal whose width is not known.
const defaultWidth = 80

// columns is the width of text for people.
func (s *system) columns() int {
	if s.width == 0 {
		return defaultWidth
	}
	return s.width
}

// listed is how a line of a list in a help text begins.
var listed = regexp.MustCompile(`^ +\S+  `)

// reflow wraps the paragraphs of a text, one a line, to a width. A line of a list is indented under
// its first word.
func reflow(text string, width int) string {
	var lines []string
	for _, paragraph := range strings.Split(text, "\n") {
		head := listed.FindString(paragraph)
		wrapped := reports.Wrap(paragraph[len(head):], width-len(head), width-len(head), false)
		if len(wrapped) == 0 {
			wrapped = []string{""}
		}
		lines = append(lines, head+strings.Join(wrapped, "\n"+strings.Repeat(" ", len(head))))
	}
	return strings.Join(lines, "\n")
}

// helpCommand shows the help of a command or topic. For an unknown name cobra's own would show the
// help of the program.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "explain a command or topic",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return &runs.UsageError{Err: fmt.Errorf("no help about %q%s", strings.Join(args, " "), spelling.Hint(args[len(args)-1], commandsOf(cmd)))}
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
    0  valid, or exactly the expected result
    1  a required property or threshold was violated, or the result is not the expected one
    2  undecided: too little happened, no fault was proven, or runs are missing
    3  broken: the run itself failed
   64  usage: the command line makes no sense, and nothing was started
  130  interrupted`

// exitCodesTopic is shown by "lockcheck help exit-codes".
func exitCodesTopic() *cobra.Command {
	return &cobra.Command{
		Use: "exit-codes", Short: "what the exit codes mean",
		Long: exitCodes + `

Over several runs the most telling code counts: interrupted, then violation, undecided, broken. In a comparison each cell counts, after its thresholds. With --expect and in reproductions, 0 means that exactly the expected verdict was reached.`,
	}
}
