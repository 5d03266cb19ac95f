package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

var (
	pipelineCommand = regexp.MustCompile(`lockcheck/lockcheck ((?:compare|merge|images) [^|;&\n]*)`)
	pipelineValue   = regexp.MustCompile(`\$\{\{[^}]*\}\}|\$[A-Za-z_]+`)
	pipelineQuotes  = strings.NewReplacer(`"`, "", "'", "")
)

// wrongPipeline says what is wrong with the command lines of lockcheck in the text of a pipeline,
// or with their number: runs, and what merges them.
func wrongPipeline(text string) error {
	seen := make(map[string]int)
	for _, match := range pipelineCommand.FindAllStringSubmatch(text, -1) {
		args := strings.Fields(pipelineQuotes.Replace(pipelineValue.ReplaceAllString(match[1], "VALUE")))
		if why := mistaken(args); why != "" {
			return fmt.Errorf("lockcheck %s: %s", strings.Join(args, " "), why)
		}
		seen[args[0]]++
	}
	if seen["compare"] != 1 || seen["merge"] != 1 || !strings.Contains(text, "--baseline before") {
		return fmt.Errorf("there are %v", seen)
	}
	return nil
}

// TestPipelines: the pipelines that are ready to copy can be read, and their command lines are
// some of lockcheck.
func TestPipelines(t *testing.T) {
	for _, name := range []string{"lockcheck.yml", "gitlab-ci.yml", "Jenkinsfile"} {
		whole, err := os.ReadFile(filepath.Join(repository, "docs/ci", name))
		if err != nil {
			t.Fatal(err)
		}
		text := string(whole)
		if strings.HasSuffix(name, ".yml") {
			if err := yaml.Unmarshal(whole, new(map[string]any)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		} else if open, closed := strings.Count(text, "{"), strings.Count(text, "}"); open != closed {
			t.Errorf("%s: %d braces are opened and %d closed", name, open, closed)
		}
		for _, c := range []struct {
			name, text string
			fine       bool
		}{
			{"as it is", text, true},
			{"a flag that there is not", strings.Replace(text, "--budget 40m", "--budged 40m", 1), false},
			{"a value that is none", strings.Replace(text, "--budget 40m", "--budget 40", 1), false},
			{"without what merges", strings.Replace(text, "lockcheck/lockcheck merge", "echo", 1), false},
			{"without a baseline", strings.Replace(text, "--baseline before", "", 1), false},
		} {
			if err := wrongPipeline(c.text); (err == nil) != c.fine {
				t.Errorf("%s, %s: %v", name, c.name, err)
			}
		}
	}
}
