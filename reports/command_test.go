package reports

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestContinued: a shell reads a broken command as the original command.
func TestContinued(t *testing.T) {
	for _, args := range [][]string{
		{"lockcheck"},
		{"lockcheck", "test", "--nemesis", "pause:one server", "--lock", "it's", "--guard", ""},
		strings.Fields("lockcheck test --lock redis --nemesis pause:holder,partition:holder,kill:holder --time-limit 14s --seed 12"),
		{"lockcheck", strings.Repeat("x", 200), "$HOME", "a\\b", "`id`"},
	} {
		lines := continued(args, 40)
		for _, line := range lines {
			if utf8.RuneCountInString(line) > 40 && strings.Contains(strings.TrimSuffix(line, ` \`), " ") && !strings.Contains(line, "'") {
				t.Errorf("a line of %d columns: %s", utf8.RuneCountInString(line), line)
			}
		}
		for _, command := range []string{CommandLine(args), strings.Join(lines, "\n    ")} {
			read, err := exec.Command("sh", "-c", `printf '%s\n' `+command).Output()
			if got := strings.Split(strings.TrimSuffix(string(read), "\n"), "\n"); err != nil || !slices.Equal(got, args) {
				t.Errorf("%s\nis read as %q (%v), want %q", command, got, err, args)
			}
		}
	}
}
