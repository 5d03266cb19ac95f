package appfile

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"lockcheck/internal/composefile"
)

// DraftName is the usual name of an app file.
const DraftName = "app.yaml"

// Draft writes a first app file for a Compose file, with comments. The service is the application; "" for the one on
// which no other service depends.
func Draft(w io.Writer, compose, service string) error {
	services, err := composefile.Read(compose)
	if err != nil {
		return err
	}
	if service, err = applicationAmong(services, service); err != nil {
		return err
	}
	database, query := "", "SELECT id FROM TABLE GROUP BY id HAVING count(*) > 1"
	for _, s := range services {
		if s.Name != service && addressOf(Server{CustomServer: s.Server, Service: s.Name}) != "" {
			database = s.Name
			break
		}
	}
	ask := fmt.Sprintf("%s   # TODO: rows that this returns are a violation", query)
	on := "    on: " + database + "\n"
	if database == "" {
		ask, on = "./check.sh   # TODO: exit 0 if all is well; exit 1 and print what is wrong", ""
	}
	_, err = fmt.Fprintf(w, `# lockcheck test --app %[1]s
# All keys: docs/own-application.md
app:
  compose: %[2]s
  service: %[3]s             # paused, killed and cut off; nothing in it knows lockcheck
  replicas: 3
  # lease: 5s                # how long the lock of a dead replica stays; faults last longer than that
  # What the replicas print, if they print it: shows overlapping holders, and which replica did what.
  # says:
  #   holding: 'acquired (?P<key>\S+)'       # printed once the lock was granted
  #   releasing: 'releasing (?P<key>\S+)'    # printed before the lock is given back
  #   did: 'finished job (?P<id>\S+)'        # work that must be done once
faults: {may hit: [%[4]s]}
# Needed if the service waits for requests: prints "accepted ID" for each that was confirmed. Spread the requests over
# %[3]s-1, %[3]s-2 and so on: a replica without work shows nothing.
# load: {command: [python3, load.py]}
invariants:
  - once: %[5]s
%[6]s# A number that grows when work is done: without it an application that does nothing would pass.
work: {ask: %[7]s}
`, DraftName, filepath.Base(compose), service, strings.Join(namesOf(services), ", "), ask, on, workOf(database))
	return err
}

func workOf(database string) string {
	if database == "" {
		return "./count.sh"
	}
	return "SELECT count(*) FROM TABLE, on: " + database
}

func namesOf(services []composefile.Service) []string {
	var names []string
	for _, s := range services {
		names = append(names, s.Name)
	}
	return names
}

// applicationAmong is the service that uses the others.
func applicationAmong(services []composefile.Service, named string) (string, error) {
	names := namesOf(services)
	if named != "" {
		if !slices.Contains(names, named) {
			return "", fmt.Errorf("there is no service %q; there are %s", named, oneOf(names))
		}
		return named, nil
	}
	used := make(map[string]bool)
	for _, s := range services {
		for _, other := range s.Uses() {
			used[other] = true
		}
	}
	var candidates []string
	for _, s := range services {
		if !used[s.Name] && len(s.Uses()) > 0 {
			candidates = append(candidates, s.Name)
		}
	}
	if len(candidates) != 1 {
		return "", errors.New("which service is the application? Name one of " + oneOf(names))
	}
	return candidates[0], nil
}
