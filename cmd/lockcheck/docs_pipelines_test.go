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
	pipelineCommand = regexp.MustCompile(`lockcheck/lockcheck ((?:compare|images) [^|;&\n]*)`)
	pipelineValue   = regexp.MustCompile(`\$\{\{[^}]*\}\}|\$[A-Za-z_]+`)
	pipelineQuotes  = strings.NewReplacer(`"`, "", "'", "")
)

// wrongPipeline says what is wrong with the lockcheck command lines in a pipeline. One command line must run
// the comparison. In a pipeline with parts, another must merge them against a baseline.
func wrongPipeline(text string, inParts bool) error {
	var runs, merges int
	for _, match := range pipelineCommand.FindAllStringSubmatch(text, -1) {
		args := strings.Fields(pipelineQuotes.Replace(pipelineValue.ReplaceAllString(match[1], "VALUE")))
		if why := mistaken(args); why != "" {
			return fmt.Errorf("lockcheck %s: %s", strings.Join(args, " "), why)
		}
		switch {
		case len(args) > 1 && args[1] == "merge":
			merges++
		case args[0] == "compare":
			runs++
		}
	}
	if runs != 1 || inParts != (merges == 1) || inParts != strings.Contains(text, "--baseline before") {
		return fmt.Errorf("%d lines make runs, %d merge them", runs, merges)
	}
	return nil
}

// TestPipelines: the pipelines for copying can be parsed, and their command lines are valid.
func TestPipelines(t *testing.T) {
	for _, name := range []string{"lockcheck.yml", "lockcheck-shards.yml", "gitlab-ci.yml", "Jenkinsfile"} {
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
		inParts := name == "lockcheck-shards.yml"
		for _, c := range []struct {
			name, text string
			fine       bool
		}{
			{"as it is", text, true},
			{"a flag that does not exist", strings.Replace(text, "--budget 40m", "--budged 40m", 1), false},
			{"a value that is none", strings.Replace(text, "--budget 40m", "--budget 40", 1), false},
			{"without its runs", strings.Replace(text, "lockcheck/lockcheck compare -f", "echo", 1), false},
			{"without what merges", strings.Replace(text, "lockcheck/lockcheck compare merge", "echo", 1), !inParts},
			{"without a baseline", strings.Replace(text, "--baseline before", "", 1), !inParts},
		} {
			if err := wrongPipeline(c.text, inParts); (err == nil) != c.fine {
				t.Errorf("%s, %s: %v", name, c.name, err)
			}
		}
	}
}
