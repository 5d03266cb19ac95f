//go:build !mutants

package clients

// mutantByName finds none: mutants are not part of what users run.
func mutantByName(string) (Info, bool) { return Info{}, false }
