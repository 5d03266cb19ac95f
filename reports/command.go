package reports

import (
	"strings"
	"unicode/utf8"
)

// CommandLine is a command that can be pasted into a shell.
func CommandLine(args []string) string { return strings.Join(quoted(args), " ") }

// quoted quotes arguments for a shell.
func quoted(args []string) []string {
	var out []string
	for _, a := range args {
		a = Printable(a)
		if a == "" || strings.ContainsAny(a, " \t\"'`$\\&|;<>()*?[]#~!{}") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		out = append(out, a)
	}
	return out
}

// continued breaks a command between arguments into lines of at most width columns. All lines except the last
// end with a shell continuation.
func continued(args []string, width int) []string {
	const more = ` \`
	var lines []string
	for i, a := range quoted(args) {
		last := len(lines) - 1
		if i > 0 && utf8.RuneCountInString(lines[last]+" "+a+more) <= width {
			lines[last] += " " + a
			continue
		}
		if i > 0 {
			lines[last] += more
		}
		lines = append(lines, a)
	}
	return lines
}

// markdownCommand shows a command as code, whatever characters it contains.
func markdownCommand(args []string) string {
	return "<code>" + Markdown(CommandLine(args)) + "</code>"
}
