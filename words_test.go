package lockcheck_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// replacedWords are those that the vocabulary replaced, as normalised has them, and what is
// said today.
var replacedWords = []struct{ pattern, instead string }{
	{`(broken )?promis(e|es|ed|ing)`, "double grant; validity; guarantee"},
	{`outlived leases?`, "use after expiry"},
	{`dead grants?`, "expired grant"},
	{`never told|not told in time|told p\d+|holder told`, "notified"},
	{`(nobody|holder) (is|was) (not )?told( nothing)?|child (is|was) not told|is told nothing|loss that is told`, "notified"},
	{`(is|was|were) told (late|in time|before (the|its)|\d+)|told that (its|their) (lock|lease) (is|was) (lost|gone|over)`, "notified"},
	{`not available on|skip unavailable`, "not supported"},
	{`hand ?overs?`, "failover"},
	{`quiet time|phase quiet`, "recovery period"},
	{`slack`, "grace period"},
	{`overtak(e|es|en|ing)|overtook`, "bypassed"},
	{`keepers?`, "resource"},
	{`harm(s|ed|ful)?`, "effect; damage"},
	{`deeds?`, "action; fault"},
	{`wish(es|ed)?`, "request"},
	{`(can|cannot|could|can not) be had`, "supported, not supported"},
	{`obstacles?`, "reason why it is not supported"},
	{`zoo|animals?`, "mutants"},
	{`variants?`, "library version"},
	{`houses?|rooms?|seats?|traps?|rubbish`, "architecture; package; slots; pitfall; fuzzing"},
	{`suffers?`, "is affected"},
	{`bur(y|ies|ied)`, "mark as killed"},
	{`widowed|bereaved|robbers?|robbed`, "say whose holder it is"},
	{`errands?|deaf`, "say what it is"},
	{`lanes?`, "row; queue; slot"},
	{`beside`, "next to; compared with"},
	{`traits?|signs|scenes?`, "capabilities; symptoms; situation"},
	{`as from one mutex|puts? down to|(comes|came) to`, "say it plainly"},
}

// plainWords hold a replaced word, and mean something else.
var plainWords = regexp.MustCompile(`zoo ?keeper|zoo\.cfg|do freezer trap|variant=minbase|font variant numeric|comes? to (an|its|the) end|came to (an|its|the|that) end|never came to`)

// keepOldWords are the files that must name what is no longer said.
var keepOldWords = []string{
	"CHANGELOG.md", "words_test.go",
	"history/schema1.go", "nemesis/schedule_test.go", "history/schema1_test.go", "checker/schema1.go", "checker/schema_test.go", // readers of old schemas
}

// keepOldLines are parts of lines that must: of what names the fields of schema 1, and of
// what reads schedules and flags of earlier versions, and of other languages.
var keepOldLines = map[string]string{
	"docs/history.md": "Version 1 is read, too", "nemesis/schedule.go": "Lane",
	"clients/wrapped_test.go": "trap ", // of a shell
	"cmd/lockcheck/test.go":   "skip-unavailable", "cmd/lockcheck/main_test.go": "--skip-unavailable",
}

// textFiles are what is read, by the ends of their names.
var textFiles = []string{".go", ".md", ".yaml", ".yml", ".tmpl", ".css", ".js", ".sh", ".py", ".Dockerfile", "Makefile"}

// TestWords: what the vocabulary replaced is said nowhere, in no name of a file either.
func TestWords(t *testing.T) {
	names, err := exec.Command("git", "ls-files", "-z").Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	read := 0
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		if !isText(name) || slices.Contains(keepOldWords, name) {
			continue
		}
		text, err := os.ReadFile(filepath.FromSlash(name))
		if err != nil {
			t.Fatal(err)
		}
		read++
		for _, f := range replacedIn(name + "\n" + string(text)) {
			if old, known := keepOldLines[name]; known && strings.Contains(lineOf(text, f.line), old) {
				continue
			}
			t.Errorf("%s:%d: %q: say %s", name, f.line, f.word, f.instead)
		}
	}
	if read < 300 {
		t.Errorf("only %d files were read", read)
	}
}

func isText(name string) bool {
	if strings.Contains(name, "testdata/") {
		return false
	}
	return slices.ContainsFunc(textFiles, func(end string) bool { return strings.HasSuffix(name, end) })
}

var (
	anyReplaced = regexp.MustCompile(`\b(` + strings.Join(patterns(), "|") + `)\b`)
	wholly      = eachReplaced()
	camelCase   = regexp.MustCompile(`([\p{Ll}0-9])(\p{Lu})`)
)

func patterns() []string {
	var all []string
	for _, w := range replacedWords {
		all = append(all, strings.ReplaceAll(w.pattern, " ", `(?:\s+(?:(?://|#)\s+)?)`)) // it may be wrapped
	}
	return all
}

// eachReplaced has the pattern of each of replacedWords.
func eachReplaced() []*regexp.Regexp {
	var all []*regexp.Regexp
	for _, p := range patterns() {
		all = append(all, regexp.MustCompile(`^(`+p+`)$`))
	}
	return all
}

// found is a replaced word.
type found struct {
	line          int // from 0
	word, instead string
}

// replacedIn returns the replaced words of a text.
func replacedIn(text string) []found {
	text = plainWords.ReplaceAllString(normalised(text), "")
	var all []found
	line, from := 0, 0
	for _, at := range anyReplaced.FindAllStringIndex(text, -1) {
		line, from = line+strings.Count(text[from:at[0]], "\n"), at[0]
		f := found{line: line, word: text[at[0]:at[1]]}
		for i, w := range replacedWords {
			if wholly[i].MatchString(f.word) {
				f.instead = w.instead
				break
			}
		}
		all = append(all, f)
	}
	return all
}

// lineOf is a line of a text, from 1.
func lineOf(text []byte, n int) string {
	lines := bytes.Split(text, []byte("\n"))
	if n < 1 || n > len(lines) {
		return ""
	}
	return string(lines[n-1])
}

// normalised takes the words of names apart: BrokenPromise and broken-promise are both
// "broken promise".
func normalised(line string) string {
	line = camelCase.ReplaceAllString(line, "$1 $2")
	return strings.ToLower(strings.NewReplacer("_", " ", "-", " ").Replace(line))
}

// TestWordsAreFound is the control of TestWords.
func TestWordsAreFound(t *testing.T) {
	for line, want := range map[string]string{
		"a broken promise of the service":          "broken promise",
		"func (r *run) brokenPromises() int {":     "broken promises",
		"  broken-promise: true":                   "broken promise",
		"`json:\"broken_promises\"`":               "broken promises",
		"Class: BrokenPromise,":                    "broken promise",
		"NoDeadGrant Property = \"no-dead-grant\"": "dead grant",
		"an *outlived lease*":                      "outlived lease",
		"figures: {told_p50: \"<= 8s\"}":           "told p50",
		"NeverTold bool":                           "never told",
		"the hand-over took 3s, handover_p99":      "hand over",
		"PhaseQuiet = \"quiet\"":                   "phase quiet",
		"Slack time.Duration `json:\"slack_ns\"`":  "slack",
		"a waiter that overtook another":           "overtook",
		"func byHarm(findings []Finding)":          "harm",
		"this fault cannot be had with that lock":  "cannot be had",
		"There is no token. Nobody is told.":       "nobody is told",
		"## The child is not told":                 "child is not told",
		"a loss that is told late":                 "loss that is told",
		"one worker was told in time":              "was told in time",
		"it was told that its\nlock is lost":       "told that its\nlock is lost",
		"a worker was told that its number is in":  "",
		"fault clock is not available on n1":       "not available on",
		"`skip-unavailable: true`":                 "skip unavailable",
		"make zoo variants":                        "zoo",
		"zooKeeper is no animal":                   "animal",
		"type lane struct{":/* of a picture */ "lane",
		"causes that it is put down to, puts down to":  "put down to",
		"the interval comes to nothing":                "comes to",
		"one beside the other":                         "beside",
		"in the quiet\n\t// time of a run":             "quiet\n\t// time",
		"the handover":                                 "handover",
		"ZooKeeper grants it":                          "",
		"the guard made that harmless":                 "",
		"two that cannot be told apart":                "",
		"the run came to its end":                      "",
		"history.Expired, history.Grace":               "",
		"on a quiet machine, a worker that stays dead": "",
		"besides, airplanes, designs and chateaux":     "",
	} {
		switch all := replacedIn("\n" + line); {
		case want == "" && len(all) > 0:
			t.Errorf("%q: found %+v", line, all)
		case want != "" && (len(all) == 0 || all[0].word != want || all[0].line != 1 || all[0].instead == ""):
			t.Errorf("%q: found %+v, want %q", line, all, want)
		}
	}
}
